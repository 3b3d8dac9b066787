"""The forms that replaced methods have inside a Declarative Pipeline; tests/spark/test_pipelines.py runs a real one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.install import pipelines

_CONTEXT = SimpleNamespace(type_url="type.googleapis.com/spark.connect.PipelineAnalysisContext")


class Reader:
    """Records the calls of a reader."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        def record(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, *args, *kwargs.items()))
            return self

        return record


class Session:
    """What a session of Spark Connect has here."""

    def __init__(self, *extensions: Any) -> None:
        local = SimpleNamespace(user_context_extensions=[("id", one) for one in extensions])
        self.client = self._client = SimpleNamespace(thread_local=local)
        self.readStream = Reader()

    @property
    def read(self) -> Reader:
        return Reader()


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Session:
    found = Session(_CONTEXT)

    def is_ours(spark: Any, name: str) -> bool:
        # the server would refuse a question with the context of the pipeline
        assert not spark.client.thread_local.user_context_extensions
        return name.lower() in ("delta", "deltapy")

    monkeypatch.setattr(pipelines, "is_ours", is_ours)
    monkeypatch.setitem(pipelines.sys.modules, pipelines._MODULE, pipelines)  # type: ignore[attr-defined]
    return found


def test_only_a_thread_with_the_context_defines_a_pipeline(spark: Session) -> None:
    assert pipelines.is_defined(spark) and pipelines.is_defined(SimpleNamespace(_spark=spark))
    assert not pipelines.is_defined(Session()) and not pipelines.is_defined(object())
    assert not pipelines.is_defined(Session(SimpleNamespace(type_url="another")))


def test_tables_by_path_in_a_query_become_reads(spark: Session) -> None:
    sql = pipelines.form_of("sql", lambda _self, text, _args=None, **frames: (text, frames))
    text, frames = sql(spark, "SELECT '{}', a FROM delta.`/a` VERSION AS OF 3 x JOIN `deltapy`.`/b` ON '{' = x.c")
    assert text == "SELECT '{{}}', a FROM {deltapy_0} x JOIN {deltapy_1} ON '{{' = x.c"
    assert frames["deltapy_0"].calls == [
        ("format", "deltapy"),
        ("options",),
        ("option", "versionAsOf", 3),
        ("load", "/a"),
    ]
    assert frames["deltapy_1"].calls[-1] == ("load", "/b")
    text, frames = sql(spark, "SELECT * FROM {other} JOIN delta.`/a`", other="frame")
    assert text == "SELECT * FROM {other} JOIN {deltapy_0}" and frames["other"] == "frame"
    for text in ("SELECT * FROM t", "SELECT * FROM parquet.`/a`", "SELEC '/'"):
        assert sql(spark, text) == (text, {})
    for text in ("DELETE FROM delta.`/a`", "SELECT * FROM delta.`/a` TIMESTAMP AS OF '2026-01-01'"):
        with pytest.raises(UnsupportedOperationError, match="Declarative Pipeline"):
            sql(spark, text)
    assert spark.client.thread_local.user_context_extensions


def test_a_sql_file_names_no_path_and_no_format(spark: Session) -> None:
    registry = SimpleNamespace(_spark=spark)
    register = pipelines.form_of("register_sql", lambda _self, text, _path: text)
    register(registry, "CREATE MATERIALIZED VIEW v AS SELECT * FROM events", "a.sql")
    for text in ("CREATE STREAMING TABLE t USING Delta", "CREATE MATERIALIZED VIEW v AS SELECT * FROM delta.`/data/t`"):
        with pytest.raises(UnsupportedOperationError, match=r"in the file a\.sql"):
            register(registry, text, "a.sql")
