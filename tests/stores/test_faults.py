"""A store that is busy, silent, cut off, or ignores conditions: nothing is lost or doubled, and what fails is named."""

from __future__ import annotations

import asyncio
import datetime
import json
import random
import re
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import google.auth.credentials
import pytest

from delta_pyds import verify
from delta_pyds.data.read.reader import read
from delta_pyds.errors import (
    DeltaError,
    FileExistsInStorageError,
    FileNotFoundInStorageError,
    NothingWrittenError,
    StorageError,
)
from delta_pyds.storage import failures
from delta_pyds.storage.base import Storage
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.stream.commit_poller import CommitPoller
from tests.concurrency.test_writers import check
from tests.concurrency.workload import Report, create, run
from tests.support.faulty_proxy import Faults, proxy
from tests.support.stores import ACCOUNT_KEY, Store
from tests.support.table_writes import read_rows, write_rows

# botocore's 5 twice over, Google's 6, and our 6 for Azure; aiohttp makes one more where a connection that was kept ends
MOST_ATTEMPTS = 24


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between attempts are as many, and shorter: the clients' as well as ours."""
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda delay, result=None: sleep(min(delay, 0.001), result))
    monkeypatch.setattr(failures, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(failures, "_LONGEST_PAUSE_S", 0.001)


@pytest.fixture
def faulty(store: Store) -> Iterator[tuple[dict[str, Any], Faults]]:
    """Options by which the store is reached through a proxy."""
    with proxy(store.url) as (url, faults):
        yield store.options_by(url), faults


@pytest.fixture
def root(store: Store) -> str:
    return store.root()


@pytest.fixture
def storage(store: Store, faulty: tuple[dict[str, Any], Faults]) -> Storage:
    """Proven before there are any faults."""
    opened = resolve_storage(store.place, faulty[0])
    opened.require_put_if_absent(f"{store.place}/proof")
    return opened


class FirstTime:
    """Each kind of request fails once, and then no more."""

    def __init__(self, fault: str | int) -> None:
        self.fault = fault
        self.seen: set[tuple[str, str]] = set()

    def __call__(self, method: str, path: str) -> str | int | None:
        request = (method, path)
        if request in self.seen:
            return None
        self.seen.add(request)
        return self.fault


@pytest.mark.parametrize("fault", [429, 500, 503, "reset", "half"])
def test_what_fails_once_is_asked_again(
    storage: Storage, root: str, faulty: tuple[dict[str, Any], Faults], fault: str | int
) -> None:
    data = bytes(range(256)) * 64
    faults = faulty[1]
    faults.choose = FirstTime(fault)
    try:
        storage.put_if_absent(f"{root}/log/1.json", data)
    except FileExistsInStorageError:
        # the answer to the second attempt, where half of that to the first one arrived: callers compare what is there
        assert fault == "half"
    storage.put(f"{root}/log/2.json", data)
    assert storage.read(f"{root}/log/1.json") == data
    assert storage.read(f"{root}/log/2.json", 100, 1000) == data[100:1100]
    listed = [(file.name, file.size_bytes) for file in storage.list_from(f"{root}/log", "")]
    assert listed == [("1.json", len(data)), ("2.json", len(data))]
    assert storage.status(f"{root}/log/2.json").size_bytes == len(data)
    with storage.open_output(f"{root}/part.parquet") as file:
        file.write(data)
    source = storage.parquet_source(f"{root}/part.parquet")
    assert source.read() == data
    assert storage.delete_all([f"{root}/log/2.json", f"{root}/part.parquet"], below=root) == {}
    storage.delete(f"{root}/log/1.json", below=root)
    with pytest.raises(FileNotFoundInStorageError):
        storage.list_from(f"{root}/log", "")
    assert len(faults.injected) > 8


@pytest.mark.parametrize("fault", [503, "reset"])
def test_a_store_that_stays_away_is_named_with_what_was_tried(
    storage: Storage, root: str, faulty: tuple[dict[str, Any], Faults], fault: str | int
) -> None:
    faults = faulty[1]
    faults.choose = lambda *_: fault
    for verb, call in (
        ("read", lambda: storage.read(f"{root}/x")),
        ("examined", lambda: storage.status(f"{root}/x")),
        ("created", lambda: storage.put_if_absent(f"{root}/x", b"x")),
        ("deleted", lambda: storage.delete(f"{root}/x", below=root)),
    ):
        faults.asked.clear()
        with pytest.raises(StorageError, match=f"'{root}/x' could not be {verb}") as caught:
            call()
        assert not isinstance(caught.value, NothingWrittenError | FileNotFoundInStorageError)
        assert 1 < len(faults.asked) <= MOST_ATTEMPTS
        assert storage.scheme != "abfss" or "this was tried 6 times" in caught.value.message
    with pytest.raises(StorageError, match=f"'{root}' could not be listed"):
        storage.list_from(root, "")
    # and it is back
    faults.choose = lambda *_: None
    storage.put_if_absent(f"{root}/x", b"x")
    assert storage.read(f"{root}/x") == b"x"


def test_a_store_that_says_nothing_is_given_up(
    store: Store, root: str, faulty: tuple[dict[str, Any], Faults], monkeypatch: pytest.MonkeyPatch
) -> None:
    options, faults = faulty
    monkeypatch.setattr("delta_pyds.storage.fsspec_store._SILENCE_S", 0.2)
    if store.name == "s3":
        options = {**options, "config_kwargs": {"read_timeout": 0.2}}
    if store.name == "azure":
        monkeypatch.setattr("azure.storage.blob._shared.base_client_async.READ_TIMEOUT", 0.2)
    silent = resolve_storage(root, options)
    silent.put(f"{root}/x", b"x")
    faults.choose = lambda *_: "silent"
    with pytest.raises(StorageError, match=f"'{root}/x' could not be read"):
        silent.read(f"{root}/x")
    assert 1 < len(faults.asked) <= MOST_ATTEMPTS


def test_a_refusal_is_not_asked_again(storage: Storage, root: str, faulty: tuple[dict[str, Any], Faults]) -> None:
    """Such as credentials that have expired: nothing was written, and no secret is told."""
    faults = faulty[1]
    faults.choose = lambda *_: 403
    faults.asked.clear()
    with pytest.raises(NothingWrittenError, match=f"'{root}/x' could not be created") as caught:
        storage.put_if_absent(f"{root}/x", b"x")
    assert len(faults.asked) == 1
    assert ACCOUNT_KEY not in str(caught.value)
    with pytest.raises(StorageError, match=f"'{root}/x' could not be read") as read:
        storage.read(f"{root}/x")
    assert not isinstance(read.value, FileNotFoundInStorageError)


def signed_options(connection_string: str) -> dict[str, Any]:
    """The same container by a shared access signature."""
    from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

    parts = dict(part.split("=", 1) for part in connection_string.strip(";").split(";"))
    signature = generate_account_sas(
        parts["AccountName"],
        parts["AccountKey"],
        ResourceTypes(container=True, object=True),
        AccountSasPermissions(read=True, write=True, delete=True, list=True, create=True),
        datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1),
    )
    return {"connection_string": f"BlobEndpoint={parts['BlobEndpoint']};SharedAccessSignature={signature}"}


def test_a_store_that_ignores_the_condition_is_refused(
    store: Store, root: str, faulty: tuple[dict[str, Any], Faults]
) -> None:
    options, faults = faulty
    if store.name == "azure":
        # a key would sign the condition, too
        options = signed_options(options["connection_string"])
    faults.choose = lambda *_: "unconditional"
    unproven = resolve_storage(root, options)
    for _ in range(2):
        with pytest.raises(NothingWrittenError, match=r"(?i)ignores if") as caught:
            unproven.put_if_absent(f"{root}/1.json", b"x")
        assert caught.value.code == "DELTA_OPERATION_NOT_ALLOWED"
    assert not resolve_storage(root, store.options).exists(f"{root}/1.json")
    with pytest.raises(NothingWrittenError, match=r"(?i)ignores if"):
        write_rows(root, {"id": "long"}, [{"id": 1}], storage_options=options)


@pytest.mark.usefixtures("environment")
def test_a_commit_whose_answer_is_lost_is_ours(root: str, faulty: tuple[dict[str, Any], Faults]) -> None:
    """The client asks again, and the store says that the file exists: it is the one that was just put."""
    options, faults = faulty
    write_rows(root, {"id": "long"}, [{"id": 0}], storage_options=options)
    lost: list[str] = []

    def lose(method: str, path: str) -> str | None:
        if method in ("PUT", "POST") and f"{1:020d}.json" in path and not lost:
            lost.append(path)
            return "lost"
        return None

    faults.choose = lose
    committed = write_rows(root, {"id": "long"}, [{"id": 1}], storage_options=options)
    assert lost and committed is not None and committed.version == 1
    assert sorted(row["id"] for row in read_rows(root)) == [0, 1]
    assert verify(root).ok


@pytest.mark.usefixtures("environment")
def test_writers_on_a_store_that_fails(root: str, faulty: tuple[dict[str, Any], Faults]) -> None:
    options, faults = faulty
    create(root, options)
    drawn, lock = random.Random(11), threading.Lock()

    def choose(method: str, path: str) -> str | int | None:  # noqa: ARG001 - any request
        with lock:
            if drawn.random() < 0.9:
                return None
            return drawn.choice([503, 500, "reset", "lost", "half"])

    reports: list[Report] = []
    faults.choose = choose
    writers, commits = 4, 5
    threads = [
        threading.Thread(target=lambda n=n: reports.append(run(root, n, commits, 3, storage_options=options)))
        for n in range(writers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(faults.injected) > 20 and len(reports) == writers
    storage = resolve_storage(root)
    infos = [
        json.loads(storage.read(f"{root}/_delta_log/{version:020d}.json").splitlines()[0])["commitInfo"]
        for version in range(writers * commits + 1)
    ]
    check(root, reports, infos, writers * commits)
    assert verify(root).ok


@pytest.mark.parametrize("status", [429, 503])
def test_a_pause_that_the_store_asks_for_has_its_bounds(
    storage: Storage,
    root: str,
    faulty: tuple[dict[str, Any], Faults],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults, sleep = faulty[1], asyncio.sleep
    pauses: list[float] = []  # of the clients
    ours: list[float] = []

    def paused(delay: float, result: Any = None) -> Any:
        pauses.append(delay)
        return sleep(0, result)

    monkeypatch.setattr(asyncio, "sleep", paused)
    monkeypatch.setattr(failures, "time", SimpleNamespace(sleep=ours.append))
    for asked_s in (7, 36_000):
        ours.clear()
        faults.retry_after_s, faults.choose = asked_s, FirstTime(status)
        storage.put(f"{root}/{asked_s}", b"x")
        storage.put_if_absent(f"{root}/{asked_s}.json", b"x")
        assert storage.read(f"{root}/{asked_s}") == b"x"
        assert next(storage.list_from(root, f"{asked_s}")).name == f"{asked_s}"
        assert max([*pauses, *ours], default=0) <= 64
        # the clients of S3 and Google have pauses of their own
        assert storage.scheme != "abfss" or (ours and min(ours) == min(asked_s, 60))


# what each service says of credentials that have ended
EXPIRED = {
    "s3": (400, [], b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"),
    "azure": (403, [("x-ms-error-code", "AuthenticationFailed")], b""),
    "google": (401, [], b'{"error": {"code": 401, "message": "Invalid Credentials"}}'),
}


def test_credentials_that_have_ended_are_not_tried_again_and_again(
    store: Store, storage: Storage, root: str, faulty: tuple[dict[str, Any], Faults]
) -> None:
    faults = faulty[1]
    faults.refusal = EXPIRED[store.name]
    faults.choose = lambda *_: "refused"
    faults.asked.clear()
    with pytest.raises(StorageError, match=f"'{root}/x' could not be read"):
        storage.read(f"{root}/x")
    assert len(faults.asked) == 1
    with pytest.raises(NothingWrittenError, match=f"'{root}/x' could not be created"):
        storage.put_if_absent(f"{root}/x", b"x")
    assert len(faults.asked) == 2


def test_credentials_of_google_that_can_be_renewed_are_renewed_once(
    store: Store, root: str, faulty: tuple[dict[str, Any], Faults]
) -> None:
    """The other clients renew theirs before they end."""
    options, faults = faulty
    faults.refusal = EXPIRED[store.name]
    credentials = RenewedCredentials()
    if store.name == "google":
        options = {**options, "token": credentials}
    store.put(f"{root}/x", b"x")
    storage = resolve_storage(root, options)
    assert storage.read(f"{root}/x") == b"x"
    renewed = credentials.renewed
    faults.choose = FirstTime("refused")
    if store.name == "google":
        assert storage.read(f"{root}/x") == b"x"
        assert credentials.renewed == renewed + 1
    faults.choose = lambda *_: "refused"
    faults.asked.clear()
    with pytest.raises(StorageError, match=f"'{root}/x' could not be read"):
        storage.read(f"{root}/x")
    assert len(faults.asked) == (2 if store.name == "google" else 1)


class RenewedCredentials(google.auth.credentials.Credentials):
    """``renewed``: how often."""

    def __init__(self) -> None:
        super().__init__()
        self.renewed = 0

    def refresh(self, _: Any) -> None:
        self.renewed += 1
        self.token = f"token-{self.renewed}"


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("ends_at", ["_delta_log", ".parquet", f"{2:020d}.json"])
def test_credentials_that_end_in_the_middle(
    store: Store, root: str, faulty: tuple[dict[str, Any], Faults], ends_at: str
) -> None:
    """Of a read, a write, a commit and a stream: named, soon, and nothing of it happened."""
    options, faults = faulty
    for number in range(2):
        write_rows(root, {"id": "long"}, [{"id": number}], storage_options=options)
    poller = CommitPoller(resolve_storage(root, options), root)
    assert len(list(poller.commits(0))) == 2
    faults.refusal = EXPIRED[store.name]
    ended: list[str] = []

    def choose(_: str, path: str) -> str | None:
        if ended or ends_at in path:
            ended.append(path)
        return "refused" if ended else None

    def check(call: Callable[[], Any]) -> None:
        ended.clear()
        with pytest.raises(DeltaError) as caught:
            call()
        assert root in caught.value.message and "could not be" in caught.value.message
        assert re.search("(?i)expired|Authenti|Invalid Credentials|401|403|forbidden|Bad Request", caught.value.message)
        assert ACCOUNT_KEY not in caught.value.message
        assert len(ended) <= 3 * MOST_ATTEMPTS  # a commit is looked for, too

    def scanned() -> None:
        scan = plan_scan(load_snapshot(root, storage_options=options), storage_options=options)
        for file in scan.files():
            assert list(read(scan.state, file))

    faults.choose = choose
    check(lambda: write_rows(root, {"id": "long"}, [{"id": 2}], storage_options=options))
    if ends_at != f"{2:020d}.json":
        check(scanned)
    if ends_at != ".parquet":
        check(lambda: list(poller.commits(2)))
    faults.choose = lambda *_: None
    assert sorted(row["id"] for row in read_rows(root)) == [0, 1]
    assert list(poller.commits(2)) == []
    committed = write_rows(root, {"id": "long"}, [{"id": 2}], storage_options=options)
    assert committed is not None and committed.version == 2
    assert [commit.version for commit in poller.commits(2)] == [2]
    assert verify(root).ok
