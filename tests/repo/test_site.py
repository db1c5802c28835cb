"""The documents as a site: every page has its place, every link leads to something, generated pages are current."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_FENCE = re.compile(r"(?ms)^ *```.*?^ *```$")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages() -> list[Path]:
    return sorted(DOCS.rglob("*.md"))


def documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md", *pages()]


def in_nav(entry: Any) -> Iterator[str]:
    match entry:
        case str():
            yield entry
        case list():
            for one in entry:
                yield from in_nav(one)
        case dict():
            for one in entry.values():
                yield from in_nav(one)


def anchors(page: Path) -> set[str]:
    """The names of headings, as both GitHub and mkdocs make them."""
    headings = re.findall(r"(?m)^#+ (.+)$", _FENCE.sub("", page.read_text()))
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def test_each_page_has_one_place_in_the_site() -> None:
    named = list(in_nav(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert sorted(named) == [page.relative_to(DOCS).as_posix() for page in pages()], "nav of mkdocs.yml, pages of docs"


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    wrong = []
    for link in _LINK.findall(_FENCE.sub("", path.read_text())):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
        elif path.is_relative_to(DOCS) and not _is_in_site(target.resolve()):
            wrong.append(f"{link}: stands neither in docs nor in examples, and so not in the site")
    assert not wrong


def _is_in_site(target: Path) -> bool:
    if target.is_relative_to(DOCS):
        return target.is_file() and target.suffix not in (".py", ".java")
    return target.is_relative_to(ROOT / "examples")


@pytest.mark.parametrize("name", ["commands", "statements"])
def test_generated_pages_are_current(name: str) -> None:
    script = DOCS / f"make_{name}.py"
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.render(), f"run: python docs/{script.name}"


@pytest.mark.skipif(
    importlib.util.find_spec("material") is None, reason="the site is built with mkdocs-material: pip install '.[docs]'"
)
def test_the_site_is_built(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    assert "Reference" in (tmp_path / "site" / "index.html").read_text()
    assert (tmp_path / "site" / "examples" / "table_api.py.html").exists()
