"""Small projects as text: their files, and what commands print about them.

A file of ``projects`` has parts that begin with ``=== ``: ``base NAME`` (the files of another one), ``file PATH``
(its content follows; without content the file goes), ``$ [NAME=VALUE ...] WORDS`` (a call of the command; what it
prints on standard output and then on standard error follows) and ``tree`` (the files that are there now). A call ends
with 0 unless ``-> CODE`` says otherwise. Seconds, sizes and names that are made anew are blotted out. ``--update``
writes what is printed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowsql.cli.main import main
from flowsql_core.secrets import hidden

FOLDER = Path(__file__).parent / "projects"
PARTS = re.compile(r"(?m)^=== ")
#: What differs from run to run.
BLOTTED = (
    (re.compile(r"\d+\.\d+ s\b"), "N s"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "JOB"),
    (re.compile(r"savepoint-[0-9a-f]{6}-[0-9a-f]{12}"), "SAVEPOINT"),
    (re.compile(r" *[\d,.]+ (?:bytes|kB)"), " SIZE"),
    (re.compile(r"(?m)^(\S+ +\S+ +(?:done|failed)(?: +[\d,]+)?) +\d+\.\d"), r"\1 N"),
)


def parts_of(path: Path) -> Iterator[tuple[str, str]]:
    """Head and content of each part."""
    for text in PARTS.split(path.read_text())[1:]:
        head, _, content = text.partition("\n")
        yield head, content


def blotted(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "/FOLDER")
    for pattern, replacement in BLOTTED:
        text = pattern.sub(replacement, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines()).lstrip("\n")


def put_file(folder: Path, name: str, content: str) -> None:
    path = folder / name
    if not content.strip():
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content.strip("\n") + "\n")


def tree(folder: Path) -> str:
    files = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return "".join(f"{re.sub('part-.*', 'PART', name)}\n" for name in sorted(files))


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("[!_]*.txt")))
def test_projects(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.setattr(hidden, "_PLACEHOLDERS", {})
    secrets = set()
    monkeypatch.chdir(folder)
    for variable in ("FLOWSQL_CONF_DIR", "FLOWSQL_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    path = FOLDER / f"{name}.txt"
    found, expected = [], []
    for head, content in parts_of(path):
        kind, _, words = head.partition(" ")
        shown = content
        match kind:
            case "base":
                for inner, text in parts_of(FOLDER / f"{words}.txt"):
                    put_file(folder, inner.removeprefix("file "), text)
            case "file":
                put_file(folder, words, content)
            case "tree":
                shown = tree(folder)
            case "$":
                call, _, code = words.partition(" -> ")
                arguments = shlex.split(call)
                with monkeypatch.context() as context:
                    while arguments and re.match(r"[A-Z_]+=", arguments[0]):
                        variable, _, value = arguments.pop(0).partition("=")
                        context.setenv(variable, value)
                        if variable.endswith("SECRET"):
                            secrets.add(value)
                    assert main(arguments) == int(code or 0), capsys.readouterr()
                out, err = capsys.readouterr()
                assert not [secret for secret in secrets if secret in out + err]
                shown = blotted(out, folder) + blotted(err, folder)
            case _:
                raise AssertionError(f"{path.name}: what is '{head}'?")
        found.append(f"=== {head}\n{shown.rstrip()}\n" if shown.strip() else f"=== {head}\n")
        expected.append(f"=== {head}\n{content.rstrip()}\n" if content.strip() else f"=== {head}\n")
    if request.config.getoption("--update"):
        heading = path.read_text().partition("=== ")[0]
        path.write_text(heading + "".join(found))
    else:
        assert found == expected
