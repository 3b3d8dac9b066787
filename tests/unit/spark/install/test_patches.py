"""Methods of PySpark's classes are replaced and put back; no session is needed for it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.spark.install import batch_writes, installation, patches
from delta_pyds.spark.install.recorded_options import RecordedOptions
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.versions import CATALOG_METHODS

# Spark 4.0 and 4.1 lack these methods of a catalog, and this one of a session of Spark Connect
_SINCE_4_2 = (set(CATALOG_METHODS), {"newSession"})


@pytest.fixture(params=[False, True], ids=["classic", "connect"])
def classes(request: pytest.FixtureRequest) -> Iterator[list[tuple[type, dict[str, Any]]]]:
    """PySpark's own classes, with what is put into them."""
    found = installation._replacements(request.param)
    for owner, replacements in found:
        assert replacements.keys() - owner.__dict__.keys() in (set(), *_SINCE_4_2), owner
    yield [(owner, {n: r for n, r in replacements.items() if n in owner.__dict__}) for owner, replacements in found]
    patches.restore()


def test_every_method_is_there_and_comes_back_as_the_same_object(classes: list[tuple[type, dict[str, Any]]]) -> None:
    before = [dict(owner.__dict__) for owner, _ in classes]
    for owner, replacements in classes:
        patches.put(owner, replacements)
    once = [dict(owner.__dict__) for owner, _ in classes]
    for owner, replacements in classes:
        patches.put(owner, replacements)

    assert [dict(owner.__dict__) for owner, _ in classes] == once
    for (owner, replacements), original in zip(classes, before, strict=True):
        for name in replacements:
            assert owner.__dict__[name] is not original[name]
            assert inspect.signature(owner.__dict__[name]) == inspect.signature(original[name])
    assert patches.replaced() == tuple(owner for owner, _ in classes)

    patches.restore()
    patches.restore()

    assert [dict(owner.__dict__) for owner, _ in classes] == before
    assert patches.replaced() == ()


class Counted:
    def call(self) -> str:
        return "Spark's"


def ours(original: Any, self: Any) -> str:
    return f"ours, over {original(self)}"


def test_what_is_asked_plainly_is_sparks_own() -> None:
    patches.put(Counted, {"call": ours, "of another version": ours})
    try:
        assert Counted().call() == "ours, over Spark's"
        with plain_calls():
            assert Counted().call() == "Spark's"
        assert Counted().call() == "ours, over Spark's"
    finally:
        patches.restore()
    assert Counted().call() == "Spark's"


def test_a_method_that_another_library_has_wrapped_meanwhile_does_nothing_of_ours_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Counted, "call", Counted.call)  # put back at the end
    patches.put(Counted, {"call": ours})
    of_us = Counted.call
    wrapped = lambda self: f"theirs, over {of_us(self)}"  # noqa: E731
    Counted.call = wrapped  # type: ignore[method-assign, assignment]

    patches.restore()

    assert Counted().call() == "theirs, over Spark's"


# --- what a writer was told


def recorded(**said: Any) -> RecordedOptions:
    found = RecordedOptions()
    for name, value in said.items():
        setattr(found, name, value)
    return found


def test_partitions_are_whole_names_and_clustering_takes_paths() -> None:
    assert batch_writes.layout(recorded(partition_by=("a.b", "c`d"))) == {"partitionBy": "`a.b`,`c``d`"}
    assert batch_writes.layout(recorded(cluster_by=("a.b", "c"))) == {"clusterBy": "`a`.`b`,`c`"}
    assert batch_writes.layout(recorded()) == {}


def test_options_match_without_regard_to_case_and_the_last_one_counts() -> None:
    found = RecordedOptions()
    found.add_option("mergeSchema", True)
    found.add_option("MERGESCHEMA", False)
    found.add_option("path", "/x")
    found.add_option("where", None)

    assert found.options("path") == {"MERGESCHEMA": "false"}
    assert found.option("MergeSchema") == "false" and found.option("where") is None


def test_what_contradicts_itself_is_refused() -> None:
    twice = recorded(partition_by=("a",))
    twice.add_option("partitionBy", "b")
    with pytest.raises(OptionError, match="partitionBy is given twice"):
        batch_writes.layout(twice)
    with pytest.raises(UnsupportedOperationError, match="no buckets, so bucketBy"):
        batch_writes.refuse(recorded(refused={"bucketBy": (4, "id")}))


@pytest.mark.parametrize(
    ("mode", "option", "wanted"),
    [
        (None, None, "errorifexists"),
        ("Overwrite", None, "overwrite"),
        ("ErrorIfExists", None, "errorifexists"),
        (None, "errorIfNotExists", "append"),
        ("append", "errorIfNotExists", "append"),
    ],
)
def test_a_mode_is_sparks_by_default_and_an_option_says_it_more_exactly(mode: Any, option: Any, wanted: str) -> None:
    said = recorded(mode=mode)
    said.add_option("createMode", option)
    assert batch_writes._mode(said) == wanted


def test_a_mode_and_an_option_that_say_something_else_are_refused() -> None:
    said = recorded(mode="ignore")
    said.add_option("createMode", "createIfNotExists")
    with pytest.raises(OptionError, match="Omit one of them"):
        batch_writes._mode(said)
    with pytest.raises(OptionError, match="must be one of"):
        batch_writes._mode(recorded(mode="merge"))


@pytest.mark.parametrize(
    ("calls", "overwrite", "text"),
    [
        ({}, False, "INSERT INTO t SELECT"),
        ({}, True, "INSERT OVERWRITE t SELECT"),
        ({"replaceUsing": "id, `a.b`"}, True, "INSERT INTO t REPLACE USING (`id`, `a.b`) SELECT"),
        ({"replaceUsing": "id"}, False, None),
        ({"replaceUsing": "id", "mergeSchema": "true"}, True, None),
        ({"replaceOn": "id = 1"}, True, None),
    ],
)
def test_an_insert_takes_one_option(
    monkeypatch: pytest.MonkeyPatch, calls: dict[str, str], overwrite: bool, text: str | None
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(batch_writes, "frame_of", lambda writer: writer)
    monkeypatch.setattr(batch_writes, "run_sql", lambda *given, **_: ran.append(given[1]))
    recorded = RecordedOptions()
    recorded.add_options(**calls)
    frame: Any = SimpleNamespace(sparkSession=None)
    if text is None:
        with pytest.raises(UnsupportedOperationError, match="insertInto"):
            batch_writes._insert_by_position(frame, "t", overwrite, recorded)
        return
    batch_writes._insert_by_position(frame, "t", overwrite, recorded)
    assert len(ran) == 1 and ran[0].startswith(text)
