"""Text that may be shown: no secrets, no characters that act, no endless text."""

from __future__ import annotations

import dataclasses
import importlib
import pickle
import pkgutil
import traceback
from typing import Any

import fsspec
import pytest

import delta_pyds
from delta_pyds import redaction
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.errors import ConstraintViolationError, DeltaError, StorageError
from delta_pyds.protocol.schema import StructType
from delta_pyds.redaction import MAX_SHOWN, conceal, secrets_of, shown, without_secrets
from delta_pyds.storage.fsspec_store import FsspecStorage
from delta_pyds.storage.resolve import normalize_table_root, open_storage

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"s3://user:{SECRET}@bucket/t", "s3://***@bucket/t"),
        (f"in 's3a://AKIA:ab/c+d={SECRET}@bucket/t' twice s3://u:{SECRET}@b.", "in 's3a://***@bucket/t' twice s3://***@b."),
        (f"https://{SECRET}@host/x", "https://***@host/x"),
        (f"http://u:{SECRET}@host:8080/x", "http://***@host:8080/x"),
        (f"ftp://u:{SECRET}@host/x", "ftp://***@host/x"),
        (f'Invalid bucket name "user:{SECRET}@bucket": it must', 'Invalid bucket name "***@bucket": it must'),
        (f"https://a.b/c?sv=1&sig={SECRET}%2F&se=2", "https://a.b/c?sv=1&sig=***&se=2"),
        (f"https://a/c?X-Amz-Signature={SECRET}&X-Amz-Date=1", "https://a/c?X-Amz-Signature=***&X-Amz-Date=1"),
        (f"?X-Amz-Security-Token={SECRET}", "?X-Amz-Security-Token=***"),
        (f"s3://{SECRET}@b/x, s3:/{SECRET}@b, sftp:///{SECRET}@b", "s3://***@b/x, s3:/***@b, sftp:///***@b"),
        (f"s3:/user:{SECRET}@b/x s3:////u:{SECRET}@b", "s3:/***@b/x s3:////***@b"),
        (f"s3://user:1234/{SECRET}@b GS://u:1/{SECRET}@b", "s3://***@b GS://***@b"),
        (f"s3://b/x?secret_key={SECRET} s3://b/x#sig={SECRET}", "s3://b/x?secret_key=*** s3://b/x#sig=***"),
        (f"AccountName=a;AccountKey={SECRET}==;x", "AccountName=a;AccountKey=***;x"),
        (f"host=db password={SECRET} dbname=x", "host=db password=*** dbname=x"),
        (f"PWD = '{SECRET} and more' x", "PWD = *** x"),
        (f"Authorization: Bearer {SECRET}12345678 is wrong", "Authorization: Bearer *** is wrong"),
    ],
)  # fmt: skip
def test_credentials_of_urls_are_cut_out(text: str, left: str) -> None:
    assert without_secrets(text) == left
    assert without_secrets(left) == left


@pytest.mark.parametrize(
    "text",
    ["abfss://container@account.dfs.core.windows.net/t", "s3://bucket/p=a:b@c/x", "http://127.0.0.1:9000/a@b",
     "a table of user@example.com", "/t/p=10:30/x", "where ts = '10:30' and mail = 'a@b'", "e#f?g=1", "/a/p=x@y/z",
     "the bearer of it, a basic one, password required"],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


def test_characters_that_act_are_escaped_and_letters_stay() -> None:
    assert (
        shown("a\n\t\r\0\x1b[31m\x9b\u202e\u2028\ud800é日本🙂") == r"a\n\t\r\x00\x1b[31m\x9b\u202e\u2028\ud800é日本🙂"
    )
    assert shown("a\nb\x1b", multiline=True) == "a\nb\\x1b"


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    text = shown("begin " + "x" * 1_000_000 + " end")
    assert text.startswith("begin x") and text.endswith("x end") and "characters left out" in text
    assert len(text) <= MAX_SHOWN and shown(text) == text


@pytest.mark.parametrize(
    "text",
    ["a:/b:" * 1_000_000, "http://" * 1_000_000 + "@", "?" + "sig" * 1_000_000 + "=", "a:" * 1_000_000 + "@",
     "://" * 1_000_000, ";" + "AccountKey" * 300_000, "\0" * 3_000_000],
    ids=["users", "schemes", "names", "colons", "slashes", "keys", "controls"],
)  # fmt: skip
def test_a_hostile_text_takes_no_time(text: str) -> None:
    assert len(shown("@=" + text)) <= MAX_SHOWN  # a quadratic search would take minutes


def test_errors_are_shown_safely_with_their_parameters() -> None:
    path = f"s3://user:{SECRET}@bucket/t\n[ERROR] forged\x1b[2J\ud800"
    error = DeltaError(f"{path} " + "x" * 100_000, code="A\nB", path=path, paths=[path], version=3)
    for one in (error, pickle.loads(pickle.dumps(error))):
        for text in (str(one), one.message, one.code, one.parameters["path"], one.parameters["paths"][0]):
            assert SECRET not in text and not set(text) & set("\n\x1b\ud800") and len(text) <= MAX_SHOWN + 20
        assert one.parameters["path"] == shown(path) and one.parameters["version"] == 3


def test_lines_that_an_error_means_survive_pickling() -> None:
    error = ConstraintViolationError("violated:\n - a : 1", multiline=True, values=" - a : 1\n - b : \x1b")
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert one.message == "violated:\n - a : 1"
        assert one.parameters == {"values": " - a : 1\n - b : \\x1b"}


# --- what holds credentials


def _with_storage_options() -> list[type[Any]]:
    found: dict[str, type[Any]] = {}
    for module in pkgutil.walk_packages(delta_pyds.__path__, "delta_pyds."):
        if ".discovery" in module.name:
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and dataclasses.is_dataclass(value):
                names = {f.name for f in dataclasses.fields(value)}
                if names & {"storage_options", "secrets"}:
                    found[value.__qualname__] = value
    return sorted(found.values(), key=lambda kind: kind.__qualname__)


def test_all_that_holds_storage_options_has_a_repr_without_them() -> None:
    kinds = _with_storage_options()
    assert {"ReadOptions", "ScanState", "WriteRequest", "WriteState"} <= {kind.__qualname__ for kind in kinds}
    for kind in kinds:
        values: dict[str, Any] = {f.name: None for f in dataclasses.fields(kind)}
        values |= {"storage_options": {"secret": SECRET, "key": "k3y", "nested": {"a": SECRET}}}
        values |= {name: f"ftp://user:{SECRET}@host/t" for name in ("table_root", "path") if name in values}
        text = repr(kind(**values))
        assert SECRET not in text and "k3y" not in text, kind
        assert text.startswith(f"{kind.__qualname__}(") and "storage_options=['key', 'nested', 'secret']" in text


def test_a_plan_that_holds_a_request_shows_none_either() -> None:
    from delta_pyds.commands.write.write import WritePlan

    request = WriteRequest("/t", StructType(()), "append", storage_options={"secret": SECRET})
    assert SECRET not in repr(WritePlan(request)) and "'/t'" in repr(WritePlan(request))


def test_of_secrets_that_pass_the_newest_are_concealed() -> None:
    """A process that lasts is given new ones each hour, and each text is searched for all that are kept."""
    before = redaction._concealed
    try:
        conceal(["for-good-secret"])
        for number in range(5_000):
            conceal([f"vended-secret-{number:05d}", f"vended-token-{number:05d}", "used-all-the-time"], passing=True)
        conceal(["for-good-secret", "x" * 9], passing=True)
        assert len(redaction._concealed) <= len(before) + 1 + redaction._MOST_PASSING
        text = "for-good-secret used-all-the-time vended-secret-04999 vended-token-04700 vended-token-00001"
        assert without_secrets(text) == "*** *** *** *** vended-token-00001"
        conceal(["used-all-the-time"])
        for number in range(redaction._MOST_PASSING):
            conceal([f"another-secret-{number:05d}"], passing=True)
        assert without_secrets("used-all-the-time vended-token-04999") == "*** vended-token-04999"
    finally:
        redaction._concealed, redaction._passing = before, ()


def test_secrets_are_told_from_other_options() -> None:
    options = {
        "key": "AKIA1",
        "secret": SECRET,
        "endpoint_url": "http://h",
        "client_kwargs": {"aws_session_token": "tok3n"},
        "anon": False,
        "sas_token": "si9nature",
        "account_name": "acc",
        "pw": "x",
    }
    assert set(secrets_of(options)) == {"AKIA1", SECRET, "tok3n", "si9nature"}


@pytest.mark.parametrize(
    "path",
    [
        f"s3://user:{SECRET}@bucket/t", f"S3A://user:a/{SECRET}@bucket", f"ftp://u:{SECRET}@host/t",
        f"s3:/user:{SECRET}@b/x", f"s3:///user:{SECRET}@b/x", f"s3://{SECRET}@bucket/x", f"gs:/{SECRET}@bucket/x",
        f"s3://user:1234/{SECRET}@b", f"s3://user:{SECRET}/1@b", f"hdfs://{SECRET}@host:8020/t", f"sftp://u:{SECRET}@h:22/t",
        f"s3://u:it's {SECRET} @b/x", f"abfss://u:{SECRET}@account.dfs.core.windows.net/t", f"abfss://a+{SECRET}@acc/t",
        f"https://a/c?sv=1&sig={SECRET}", f"abfss://c@acc/t?SIG={SECRET}", f"s3://b/x?X-Amz-Signature={SECRET}",
        f"s3://b/x?secret_key={SECRET}", f"s3://b/x?a=1&token=it's {SECRET}", f"s3://b/x#access_key={SECRET}",
    ],
)  # fmt: skip
def test_a_root_with_credentials_is_refused_without_telling_them(path: str) -> None:
    with pytest.raises(StorageError, match="contains credentials") as caught:
        normalize_table_root(path)
    assert SECRET not in str(caught.value) + repr(caught.value.parameters)


@pytest.mark.parametrize(
    "root",
    ["abfss://container@account.dfs.core.windows.net/t@x", "wasbs://c-1@account.blob.core.windows.net/t", "wasb://$root@a",
     "abfs://c@account.dfs.core.windows.net/a:b@c", "hdfs://host:8020/a@b", "s3://bucket/p=a:b@c", "s3://b/user=x@y",
     "s3://b/what?", "s3://b/p?page=2", "/t/user:x@y/z?sig=1"],
)  # fmt: skip
def test_a_root_without_credentials_is_taken(root: str) -> None:
    assert normalize_table_root(root) == root


class Talkative(fsspec.AbstractFileSystem):
    """Its errors tell all that it knows, and so do their causes."""

    protocol = "talkative"
    cachable = False

    def __init__(self, secret: str, broken: bool = False, **_: Any) -> None:
        super().__init__()
        self.secret = secret
        if broken:
            raise ValueError(f"cannot sign in with {secret}")

    def _fail(self, *_: Any, **__: Any) -> Any:
        try:
            raise KeyError(f"Authorization: {self.secret}")
        except KeyError as error:
            raise PermissionError(f"403 for https://host/x?sig={self.secret}&a=1 {self.secret}") from error

    ls = info = cat_file = pipe_file = rm_file = _fail

    def open(self, *_: Any, **__: Any) -> Any:
        return self._fail()


def test_errors_of_packages_tell_no_secret_in_text_or_traceback() -> None:
    fsspec.register_implementation("talkative", Talkative, clobber=True)
    storage = open_storage("talkative", "talkative://host/t", {"secret": SECRET})
    path = "talkative://host/t/f"
    calls = [
        lambda: storage.read(path),
        lambda: storage.status(path),
        lambda: storage.exists(path),
        lambda: storage.parquet_source(path),
        lambda: list(storage.list_from(path, "")),
        lambda: storage.put(path, b""),
        lambda: storage.open_output(path),
        lambda: storage.delete(path, below="talkative://host/t"),
        lambda: open_storage("talkative", "talkative://host/t", {"secret": SECRET, "broken": True}),
    ]
    for call in calls:
        with pytest.raises(StorageError) as caught:
            call()
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert "***" in str(caught.value)


def test_an_error_without_secrets_keeps_its_cause() -> None:
    class Plain(Talkative):
        def _fail(self, *_: Any, **__: Any) -> Any:
            raise PermissionError("forbidden")

        cat_file = rm_file = _fail

    storage = FsspecStorage(Plain(SECRET), "talkative", root="talkative://host/t", secrets=(SECRET,))
    for call in (
        lambda: storage.read("talkative://host/t/f"),
        lambda: storage.delete("talkative://host/t/f", below="talkative://host/t"),
    ):
        with pytest.raises(StorageError, match="PermissionError: forbidden") as caught:
            call()
        assert isinstance(caught.value.__cause__, PermissionError)
