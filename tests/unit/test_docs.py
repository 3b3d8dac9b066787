"""The pages: links lead somewhere, tables name what the code has, and each page is in the site's menu."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import delta_pyds
from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark import settings
from delta_pyds.spark.delta_table.optimize_builder import DeltaOptimizeBuilder
from delta_pyds.spark.options.names import WRITE_NAMES
from delta_pyds.spark.options.read import READ_OPTIONS, STREAM_OPTIONS
from delta_pyds.statements import kinds
from delta_pyds.statements.parse import parse_statement
from tests.support.conflict_matrix import CODES, TABLE
from tests.support.reference_api import METHODS, OPTIONS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "delta_pyds/docs"
PAGES = DOCS / "pages"
FOLDERS = ("delta_pyds", "tests", "examples", ".github")
MARKDOWN = sorted([ROOT / "README.md", *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))])
MIGRATION = (PAGES / "delta-spark.md").read_text()


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hooks = _module("hooks")


# --- links and the menu


def _anchors(text: str) -> set[str]:
    """Of headings, as MkDocs and hosting pages make them."""
    titles = re.findall(r"^#+ (.*)$", hooks._FENCE.sub("", text), flags=re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    source = page.relative_to(ROOT).as_posix()
    for target in hooks.links(page.read_text()):
        file = ROOT / hooks.linked_file(target, source)
        made = hooks.site_page(file.relative_to(ROOT).as_posix()) in ("errors.md", "examples.md", "speed.md")
        assert file.exists() or (made and source.startswith(hooks.PAGES)), f"{source} links to {target}"
        anchor = target.partition("#")[2]
        assert not anchor or made or anchor in _anchors(file.read_text()), f"{source} links to {target}"


def test_the_menu_has_each_page_once() -> None:
    menu = re.findall(r"^ +- [^:\n]+: (\S+\.md)$", (DOCS / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    written = {path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.md")}
    assert sorted(menu) == sorted(written | set(hooks.ELSEWHERE.values()) | {"errors.md", "examples.md", "speed.md"})


def test_links_become_the_sites() -> None:
    text = "[a](../../../../tests/interop/MATRIX.md#x) [b](../options.md) [c](../../../py.typed) [d](gone.md)\n"
    code = "```\n[e](../../../py.typed)\n```\n"
    assert hooks.site_links(text + code, "how-to/upsert.md") == (
        f"[a](../matrix.md#x) [b](../options.md) c [d](gone.md)\n{code}"
    )
    assert hooks.site_links("[o](docs/pages/options.md)", "changes.md") == "[o](options.md)"


# --- the reference, and errors


def test_docstrings_become_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    # griffe is in the environment of `make docs` alone
    monkeypatch.setitem(sys.modules, "griffe", SimpleNamespace(Extension=object))
    as_markdown = _module("docstrings").as_markdown
    assert as_markdown("A path, as ``delta.`/t```, or ``a``.") == "A path, as `` delta.`/t` ``, or ``a``."
    assert as_markdown("Raises: as\n    ``f``.\n").startswith("**Raises:** as ``f``.\n")
    assert as_markdown("It.\n\n>>> f(\n...     1)\n") == "It.\n\n\n```python\nf(\n    1)\n```\n\n"


def test_the_reference_has_each_public_name() -> None:
    public = {f"delta_pyds.{name}" for name in delta_pyds.__all__}
    public |= {f"delta_pyds.catalog.{name}" for name in delta_pyds.catalog.__all__}
    assert public <= hooks.documented_names()


def test_the_page_of_errors_has_each_class_and_its_codes() -> None:
    page = hooks.errors_page()
    assert all(f"\n## {name}\n" in page for name in hooks.error_classes())
    assert '<span id="DELTA_MISSING_DELTA_TABLE"></span>`DELTA_MISSING_DELTA_TABLE`' in page
    raised = hooks.raised_errors()
    assert all(f"`{found.code}`" in page for found in raised)
    assert len({found.code for found in raised}) > 200
    assert not re.search(r"\{[^}\s]*[^\w.}][^}]*\}", re.sub(r"\\(.)", r"\1", page).split("## DeltaError")[0])


# --- coming from delta-spark


def _section(title: str) -> str:
    """The text below a heading, up to the next heading of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}$(.*?)(?=^#{{1,3}} |\Z)", MIGRATION, flags=re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[2]


def _rows(section: str) -> Iterator[tuple[str, str]]:
    """The first two cells of each row of its tables."""
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) > 1:
            yield cells[0].removeprefix("| "), cells[1].removesuffix(" |")


def _names(text: str) -> list[str]:
    return re.findall(r"`(\w+)`", text)


@pytest.mark.parametrize("kind", METHODS)
def test_each_method_of_the_reference_has_its_state(kind: str) -> None:
    ours: type = {"DeltaOptimizeBuilder": DeltaOptimizeBuilder}.get(kind) or getattr(delta_pyds, kind)
    public = {name for name, _ in inspect.getmembers(ours, callable) if not name.startswith("_")}
    states = {name: state for cell, state in _rows(_section(kind)) for name in _names(cell)}
    assert set(states) == public | METHODS[kind]
    for name, state in states.items():
        assert state.startswith("missing") == (name not in public), name
        assert state.startswith("new") == (name not in METHODS[kind]), name


def test_each_method_of_pyspark_that_install_replaces_is_named() -> None:
    from pyspark.sql import Catalog, DataFrame, DataFrameReader, DataFrameWriter, DataFrameWriterV2, SparkSession
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
    from pyspark.sql.conf import RuntimeConfig
    from pyspark.sql.streaming import DataStreamReader, DataStreamWriter

    looked_at: dict[str, type] = {
        "SparkSession": SparkSession, "DataFrameReader": DataFrameReader, "DataFrameWriter": DataFrameWriter,
        "DataFrameWriterV2": DataFrameWriterV2, "DataFrame": ClassicFrame, "DataStreamReader": DataStreamReader,
        "DataStreamWriter": DataStreamWriter, "Catalog": Catalog, "RuntimeConfig": RuntimeConfig,
    }  # fmt: skip
    assert DataFrame.__name__ == "DataFrame"
    before = {name: dict(vars(kind)) for name, kind in looked_at.items()}
    delta_pyds.install()
    try:
        replaced = {
            name: {key for key, value in vars(kind).items() if before[name].get(key) is not value}
            for name, kind in looked_at.items()
        }
    finally:
        delta_pyds.uninstall()
    states = {_names(cell)[0]: _names(methods) for cell, methods in _rows(_section("Methods of PySpark"))
              if _names(cell)}  # fmt: skip
    actions = {"count", "explain", "toArrow", "head", "first", "take", "tail", "isEmpty", "foreach", "foreachPartition"}
    for name, methods in replaced.items():
        public = {method for method in methods if not method.startswith("_")}
        assert public - (actions if name == "DataFrame" else set()) == set(states[name]), name


def test_each_option_of_the_reference_has_its_state() -> None:
    states = {name: state for cell, state in _rows(_section("Options")) for name in _names(cell)}
    ours = {*READ_OPTIONS, *STREAM_OPTIONS, *map(str.lower, WRITE_NAMES)}
    assert set(states) == OPTIONS
    for name, state in states.items():
        assert (state == "same") == (name.lower() in ours), name


def test_options_are_on_their_page() -> None:
    page = (PAGES / "options.md").read_text().lower()
    spoken = {"path", "paths", "writeresult"}  # of Spark, and between processes of this package
    aliases = {"readchangedata", "ignorefiledeletion", "schemalocation"}  # old names, on the page for delta-spark
    shortened = {"allowsourcecolumndrop": "...drop`", "allowsourcecolumntypechange": "...typechange`"}
    for name in ({*READ_OPTIONS, *STREAM_OPTIONS, *map(str.lower, WRITE_NAMES)} - spoken) - aliases:
        assert f"`{name}`" in page or shortened.get(name, "\0") in page, name


def test_each_kind_of_statement_has_its_state() -> None:
    seen = set()
    for cell, state in _rows(_section("Statements")):
        text = re.fullmatch(r"(`+) ?(.*?) ?\1", cell)
        if text is None:
            continue
        if state.startswith("missing"):
            with pytest.raises(UnsupportedOperationError):
                parse_statement(text[2])
        else:
            seen.add(type(parse_statement(text[2]).statement).__name__)
    there = {name for name, value in vars(kinds).items()
             if inspect.isclass(value) and issubclass(value, kinds.Statement)}  # fmt: skip
    assert there - {"Statement"} <= seen
    assert {"PassThrough", "TemporaryView"} <= seen


def test_each_setting_that_is_heeded_is_named() -> None:
    section = _section("Settings of the session")
    keys = [value for value in vars(settings).values() if isinstance(value, str)]
    asked = {key.removeprefix(settings.DELTA_PREFIX) for key in keys if key.startswith(settings.DELTA_PREFIX)}
    asked = {name for name in asked if name and not name.endswith(".")}
    assert len(asked) > 8
    for name in asked:
        assert f"`{name}`" in section, name


# --- charts


def test_charts_show_what_is_slower_first_and_only_figures_of_the_results(tmp_path: Path) -> None:
    def row(work: str, what: str, ratio: float, theirs: str = "format delta") -> dict[str, object]:
        both = {"ours_median": ratio, "theirs_median": 1.0}
        return {"work": work, "what": what, "ours": "delta_pyds.read", "theirs": theirs, "ratio": ratio, **both}

    rows = [
        row("TPC-H", "TPC-H 1", 0.5), row("TPC-H", "TPC-H 2", 1.25), row("TPC-H", "TPC-H 2", 4.0, "Sail"),
        row("TPC-H: all queries", "2 queries, geometric mean", 0.79), row("write", "append <one> row", 0.25),
        row("life of a table", "session 1, merge", 0.75),
    ]  # fmt: skip
    work = {"run": "today", "load": "1.0 to 2.0", "about": {"pyspark": "4.2.0"}, "rows": rows}
    file = tmp_path / "RESULTS.json"
    file.write_text(json.dumps({"about": {}, "works": {"tpch": work}}))
    page = _module("charts").speed_page(file)
    slower, rest = page.split("## TPC-H")[0], page.split("## TPC-H")[1]
    assert ">1.25<" in slower and ">4.00<" in slower and ">0.50<" not in slower
    assert all(f">{figure}<" in rest for figure in ("0.50", "1.25", "0.79", "0.25"))
    assert "append &lt;one&gt; row" in rest
    assert "delta_pyds 0.75 s" in rest and "1.0 to 2.0" in rest and "pyspark 4.2.0" in rest
    for figure in re.findall(r"<figure.*?</figure>", page, flags=re.DOTALL):
        assert "\n\n" not in figure, "an empty line ends a block of HTML"


def test_the_page_of_conflicts_has_the_tested_matrix() -> None:
    page = (PAGES / "conflicts.md").read_text()
    assert TABLE in page
    assert all(
        f"| {letter} | fails with `{code}` |" in page for letter, code in CODES.items() if f" {letter} |" in TABLE
    )
