"""The page of a report: what is in it, what never is, and how a real browser shows it."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import delta_pyds
from delta_pyds.cli.main import main
from delta_pyds.commands.report.pictures import MOST_BINS, curve, lying, stacked
from delta_pyds.errors import OptionError
from tests.support.table_builder import TableBuilder, generate_large

_NO_END = {"meta", "link"}


class _Tree(HTMLParser):
    """Knows the elements, and that they are closed in turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs
        if tag not in _NO_END:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_has_every_section(many_sided: TableBuilder, tmp_path: Path) -> None:
    page = delta_pyds.report(many_sided.path, to=tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert titles == [
        "Gains of maintenance", "Findings of verify", "Files", "Deleted rows", "Partitions",
        "Clustering depth", "Versions", "Definition",
    ]  # fmt: skip
    assert "<h1>orders</h1>" in page and "the data team" in page and "4 → 2 files" in page
    assert "4 of 35 rows" in page
    tree = _Tree(page)
    assert tree.open == []
    # each picture has a title, and no two elements one id
    ids = [value for name, value in tree.attributes if name == "id"]
    assert len(set(ids)) == len(ids) == tree.elements.count("svg") - page.count('aria-hidden="true"')


def test_markup_of_others_is_text(hostile: Path) -> None:
    page = delta_pyds.report(hostile)
    tree = _Tree(page)
    assert tree.open == []
    assert not {"script", "img", "iframe", "object", "embed", "a", "form"} & set(tree.elements)
    assert not any(name.startswith("on") for name, _ in tree.attributes)
    assert "\u202e" not in page and "&lt;script&gt;" in page
    assert len(page) < 60_000


@pytest.mark.parametrize(("how", "state"), [("data", ">sound<"), (True, ">sound log<")])
def test_a_table_is_sound_only_if_its_data_were_read(many_sided: TableBuilder, how: Any, state: str) -> None:
    assert state in delta_pyds.report(many_sided.path, verify=how)


def test_a_notebook_shows_the_page_in_a_frame_without_scripts(hostile: Path) -> None:
    page = delta_pyds.report(hostile)
    shown = page._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!DOCTYPE') and 'sandbox=""' in shown and "<script" not in shown
    assert html.unescape(shown.partition('srcdoc="')[2].partition('"')[0]) == page


@pytest.mark.parametrize(
    ("how", "text"), [(False, "not requested"), ("data", "4 files with 31 rows"), (True, "No data file")]
)
def test_what_verify_reads_is_the_callers_choice(many_sided: TableBuilder, how: bool, text: str) -> None:
    page = delta_pyds.report(many_sided.path, verify=how)
    assert text in page.partition("Findings of verify")[2].partition("</section>")[0]


@pytest.mark.parametrize("how", [0, 1, "all", None])
def test_what_verify_reads_is_named(many_sided: TableBuilder, how: Any) -> None:
    with pytest.raises(OptionError, match="'log' or 'data'"):
        delta_pyds.report(many_sided.path, verify=how)


def test_findings_are_listed(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    (add,) = builder.append([{"id": 1}])
    builder.data_file(add).unlink()
    page = delta_pyds.report(tmp_path, verify="data")
    assert "1 error" in page and "<td>error</td>" in page


def test_a_table_without_files_has_a_page(tmp_path: Path) -> None:
    TableBuilder(tmp_path, {"id": "long"}).create()
    page = delta_pyds.report(tmp_path)
    assert "The table has no files." in page and "The table is not partitioned." in page


def test_pictures_have_few_elements_whatever_they_show() -> None:
    many = 100_000
    for drawn in (
        curve("c", ("a", "b"), [float(n) for n in range(many)], str),
        lying("l", [("x", float(n), "x") for n in range(many)]),
        stacked("s", ["x"] * many, [("a", range(many)), ("b", range(many))], str),
    ):
        assert drawn.count("<") < 12 * MOST_BINS


def test_a_page_is_no_longer_for_more_files(tmp_path: Path) -> None:
    pages = []
    for number in (400, 20_000):
        generate_large(tmp_path / str(number), number, partitioned=True)
        pages.append(delta_pyds.report(tmp_path / str(number), verify=False))
    assert len(pages[1]) < 1.1 * len(pages[0]) and "20,000 files" in pages[1]


def test_a_label_that_is_cut_holds_no_half_of_a_secret() -> None:
    url = "s3://AKIAUSER:thisisaverylongsecretkeythatgoesonandonandon@bucket/x"
    drawn = lying("l", [(f"url={url}", 1.0, "x")]) + stacked("s", [url], [("a", [1])], str)
    assert "AKIAUSER" not in drawn and "secret" not in drawn and "***@bucket" in drawn


def test_secrets_of_a_table_are_not_passed_on(tmp_path: Path) -> None:
    properties = {"fs.s3a.secret.key": "TOPSECRET", "delta.logRetentionDuration": "interval 3 days"}
    TableBuilder(tmp_path, {"id": "long"}, properties=properties).create()
    page = delta_pyds.report(tmp_path)
    assert "TOPSECRET" not in page and "fs.s3a.secret.key" in page and "interval 3 days" in page


def test_an_operation_may_be_called_other(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    for name in ("other", "other", "a", "b", "c", "d", "e", "f"):
        builder.commit(operation=name)
    page = delta_pyds.report(tmp_path)
    assert page.count("</svg>other</li>") == 1 and page.count("</svg>other operations</li>") == 1


def test_pictures_of_nothing() -> None:
    for drawn in (
        curve("c", ("", ""), [], str),
        lying("l", []),
        stacked("s", [], [], str),
        curve("c", ("", ""), [0], str),
    ):
        assert drawn.startswith("<svg") and "nan" not in drawn


def test_the_command_writes_a_file(
    many_sided: TableBuilder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "r.html"
    assert main(["report", str(many_sided.path), "-o", str(target), "--no-verify"]) == 0
    assert capsys.readouterr().out == f"The report is in {target}.\n"
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert main(["report", str(many_sided.path), "-o", str(tmp_path / "no" / "r.html")]) == 2
    assert main(["report", str(tmp_path / "nothing")]) == 3


def test_the_command_prints_the_page(many_sided: TableBuilder, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["report", str(many_sided.path), "--no-verify"]) == 0
    assert capfdbinary.readouterr().out.startswith(b"<!DOCTYPE html>")
