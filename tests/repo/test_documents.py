"""Documents say what the code does."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from flowsql.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def make_options() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_options", ROOT / "docs" / "make_options.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_of_options_is_current(make_options: ModuleType) -> None:
    assert make_options.TABLE.read_text() == make_options.render_table(), "run: python docs/make_options.py"


def test_homes_of_options_are_current(make_options: ModuleType) -> None:
    assert make_options.HOMES.read_text() == make_options.render_homes(), "run: python docs/make_options.py"


def documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text())
    missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_make_targets_that_are_named_exist(path: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text()))
    named = set(re.findall(r"(?m)(?:`|\$ )make ([a-z]+)", path.read_text()))
    assert named <= targets


def readme_commands() -> list[tuple[str, str]]:
    """Commands of the README that need no files, with what they print."""
    found = []
    for block in re.findall(r"(?s)```console\n(.*?)```", (ROOT / "README.md").read_text()):
        command, _, output = block.partition("\n")
        if match := re.fullmatch(r'\$ flowsql -c "(.*)"', command):
            found.append((match[1], output))
    return found


@pytest.mark.parametrize(("sql", "output"), readme_commands())
def test_readme_shows_what_is_printed(sql: str, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["-c", sql])
    found = capsys.readouterr()
    seconds = re.compile(r"\(\d+\.\d\d seconds\)")
    assert seconds.sub("", found.out + found.err) == seconds.sub("", output)


def test_readme_begins_with_the_two_commands() -> None:
    first_screen = (ROOT / "README.md").read_text().splitlines()[:24]
    assert any("make demo" in line for line in first_screen)
    assert any("make test" in line for line in first_screen)


def test_readme_programs_run(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for program in re.findall(r"(?s)```python\n(.*?)```", (ROOT / "README.md").read_text()):
        exec(compile(program, "README.md", "exec"), {})
        printed.append(capsys.readouterr().out)
    session, streams = printed
    assert "2 rows in set" in session
    assert "+U ann 7" in session
    assert "4 rows in set" in streams
    assert sorted(streams.splitlines()[-2:]) == ["ANN", "BOB"]
