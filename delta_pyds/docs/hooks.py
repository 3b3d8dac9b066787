"""Hooks of MkDocs: pages from other folders of the repository, pages made from the code, links, and one check.

A page exists once. Its links are valid in the repository; the hook rewrites them for the site. The build fails for a
public name that has no docstring or is on no page of the reference.
"""

from __future__ import annotations

import ast
import html
import importlib.util
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "delta_pyds"
PAGES = "delta_pyds/docs/pages"
# files of the repository that are pages of the site
ELSEWHERE = {
    "delta_pyds/ARCHITECTURE.md": "architecture.md",
    "delta_pyds/CHANGELOG.md": "changes.md",
    ".github/CONTRIBUTING.md": "contributing.md",
    ".github/SECURITY.md": "security.md",
    "tests/bench/RESULTS.md": "results.md",
    "tests/interop/MATRIX.md": "matrix.md",
    "tests/parity/PARITY.md": "parity.md",
}
# pages of the site for links to files of the repository that are not pages themselves
INSTEAD = {"README.md": "index.md", "examples": "examples.md", "examples/README.md": "examples.md"}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_DOCUMENTED = re.compile(r"^::: (delta_pyds[\w.]*)", re.MULTILINE)


class Raised(NamedTuple):
    """An error that the package raises: its class, its code, and its message with names for values."""

    kind: str
    code: str
    message: str


# --- MkDocs calls these


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    check_public_names()
    made = {target: (ROOT / source).read_text() for source, target in ELSEWHERE.items()}
    made |= {"errors.md": errors_page(), "examples.md": examples_page()}
    made["speed.md"] = charts().speed_page(ROOT / "tests/bench/RESULTS.json")
    for target, text in made.items():
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    del config, files
    return site_links(markdown, page.file.src_uri)


def charts() -> ModuleType:
    """The module beside this one: MkDocs runs hooks as files, outside any package."""
    spec = importlib.util.spec_from_file_location("docs_charts", Path(__file__).with_name("charts.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- links


def repository_path(page: str) -> str:
    """The file of the repository that is the page ``page`` of the site."""
    return next((source for source, target in ELSEWHERE.items() if target == page), f"{PAGES}/{page}")


def links(markdown: str) -> list[str]:
    """The files that a page links to, without links in code."""
    found = [match[3] for match in _LINK.finditer(_FENCE.sub("", markdown))]
    return [target for target in found if _is_relative(target)]


def linked_file(target: str, source: str) -> str:
    """The file of the repository that ``target`` means in the file ``source``."""
    path = target.partition("#")[0]
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path)) if path else source


def site_links(markdown: str, page: str) -> str:
    """The text of a page with links to pages of the site. Links to other files of the repository become plain text."""
    source = repository_path(page)

    def rewritten(match: re.Match[str]) -> str:
        image, text, target = match[1], match[2], match[3]
        if image or not _is_relative(target) or target.startswith("#"):
            return match[0]
        file, anchor = linked_file(target, source), target.partition("#")[1:]
        on_site = site_page(file)
        if on_site is not None:
            relative = posixpath.relpath(on_site, posixpath.dirname(page) or ".")
            return f"[{text}]({relative}{''.join(anchor)})"
        return text if (ROOT / file).exists() else match[0]

    pieces, end = [], 0
    for fence in _FENCE.finditer(markdown):
        pieces += [_LINK.sub(rewritten, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*pieces, _LINK.sub(rewritten, markdown[end:])])


def site_page(file: str) -> str | None:
    """The page of the site that a file of the repository is on."""
    if file.startswith(f"{PAGES}/"):
        return file.removeprefix(f"{PAGES}/")
    return ELSEWHERE.get(file) or INSTEAD.get(file)


def _is_relative(target: str) -> bool:
    return not re.match(r"[a-z]+:", target)


# --- public names


def documented_names() -> set[str]:
    """Names on pages of the reference, and the errors, which have a separate page."""
    pages = (ROOT / PAGES / "reference").glob("*.md")
    shown = {name for page in pages for name in _DOCUMENTED.findall(page.read_text())}
    return shown | {f"delta_pyds.{kind}" for kind in error_classes()}


def check_public_names() -> None:
    """Raises: PluginError for a public name, or a public method of one, that is not documented."""
    import griffe
    from mkdocs.exceptions import PluginError

    package = griffe.load("delta_pyds", search_paths=[str(ROOT)])
    missing = []
    for module in ("delta_pyds", "delta_pyds.catalog"):
        owner = package if module == "delta_pyds" else package["catalog"]
        for name in owner.exports or ():
            found = owner[str(name)]
            if f"{module}.{name}" not in documented_names():
                missing.append(f"{module}.{name} is on no page of the reference")
            members = found.all_members.values() if found.is_class else ()
            methods = [m for m in members if m.is_function and m.is_public and not m.is_special]
            missing += [f"{m.path} has no docstring" for m in (found, *methods) if not m.has_docstring]
    if missing:
        raise PluginError("Undocumented public names: " + "; ".join(missing))


# --- errors by code


def error_classes() -> dict[str, ast.ClassDef]:
    """The classes of ``delta_pyds.errors``, in their order there."""
    body = ast.parse((PACKAGE / "errors.py").read_text()).body
    return {node.name: node for node in body if isinstance(node, ast.ClassDef)}


def raised_errors() -> list[Raised]:
    """Each class, code and message once, sorted."""
    kinds = error_classes()
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and (kind := _called(node.func)) in kinds:
                message = _template(node.args[0]) if node.args else ""
                found |= {Raised(kind, code, message) for code in _codes(node) or [default_code(kind)]}
    return sorted(found)


def default_code(kind: str) -> str:
    """The default code of an error of this class."""
    kinds = error_classes()
    for statement in kinds[kind].body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            return str(statement.value.value)
    return default_code(next(base.id for base in kinds[kind].bases if isinstance(base, ast.Name) and base.id in kinds))


def errors_page() -> str:
    kinds = error_classes()
    raised = raised_errors()
    lines = [
        "# Errors by code",
        "",
        "Every error is a `delta_pyds.DeltaError` with a `code`, a `message` and `parameters`.",
        "If the reference has a code for the case, it is the same code.",
        "`delta_pyds.error_of(exception)` finds the error in an exception of Spark.",
        "This page is generated from the code. Names in braces are placeholders for values.",
        "",
        "```text",
        *_tree("DeltaError", kinds),
        "```",
    ]
    for kind, node in kinds.items():
        docstring = (ast.get_docstring(node) or "").split("\n\n")[0].replace("``", "`")
        lines += ["", f"## {kind}", "", " ".join(docstring.split()), "", f"Default code: `{default_code(kind)}`."]
        before = ""
        for found in (found for found in raised if found.kind == kind):
            if found.code != before:
                lines += ["", f'<span id="{found.code}"></span>`{found.code}`', ""]
                before = found.code
            if found.message:
                lines.append(f"- {_escaped(found.message)}")
    return "\n".join([*lines, ""])


def _tree(kind: str, kinds: dict[str, ast.ClassDef], depth: int = 0) -> Iterator[str]:
    yield "  " * depth + kind
    for name, node in kinds.items():
        if node.bases and isinstance(node.bases[0], ast.Name) and node.bases[0].id == kind:
            yield from _tree(name, kinds, depth + 1)


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _codes(call: ast.Call) -> list[str]:
    given = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
    inside = [node.value for value in given for node in ast.walk(value) if isinstance(node, ast.Constant)]
    return [value for value in inside if isinstance(value, str) and re.fullmatch(r"[A-Z][A-Z0-9_.]+", value)]


def _template(message: ast.expr) -> str:
    """A message with a name in braces for each value. Empty if the message comes from a variable."""
    if isinstance(message, ast.Constant) and isinstance(message.value, str):
        return message.value
    if isinstance(message, ast.BinOp) and isinstance(message.op, ast.Add):
        return _template(message.left) + _template(message.right)
    if isinstance(message, ast.JoinedStr):
        parts = (_template(p) if isinstance(p, ast.Constant) else "{" + _short(p) + "}" for p in message.values)
        return "".join(parts)
    return ""


def _short(value: ast.AST) -> str:
    """A name for a value: the last part of the first name in it that is not a call."""
    called = {id(node.func) for node in ast.walk(value) if isinstance(node, ast.Call)}
    names = (node for node in ast.walk(value) if isinstance(node, (ast.Attribute, ast.Name)) and id(node) not in called)
    found = next(names, None)
    if found is None:
        return "..."
    return (found.attr if isinstance(found, ast.Attribute) else found.id).strip("_")


def _escaped(text: str) -> str:
    """A text with the markup of Markdown and HTML escaped."""
    escaped = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", escaped)


# --- examples


def examples_page() -> str:
    text = (ROOT / "examples/README.md").read_text().replace("# Examples", "# Complete programs", 1)
    parts = [text]
    for program in sorted((ROOT / "examples").glob("*.py")):
        parts.append(f"## {program.name}\n\n```python\n{program.read_text()}```\n")
    return "\n".join(parts)
