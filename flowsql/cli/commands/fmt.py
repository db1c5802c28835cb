"""``flowsql fmt PATH...``: SQL files laid out in place, or what would change in them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from flowsql.cli.arguments.fmt import STANDARD_INPUT, FmtInvocation
from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from flowsql_core.errors import FlowSqlError
from flowsql_core.span import Source
from flowsql_grammar.formatting import format_script

_TESTS: Final = ".test.sql"


def run(invocation: FmtInvocation) -> int:
    """Format the files; the exit code."""
    if invocation.paths == (STANDARD_INPUT,):
        return _standard_input(invocation)
    try:
        files = sql_files(invocation.paths) if invocation.paths else _project_files()
    except OSError as error:
        print(f"flowsql: error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except FlowSqlError as error:
        print(f"flowsql: error: {error.render()}", file=sys.stderr)
        return EXIT_USAGE
    changed = failed = 0
    for file in files:
        try:
            before = file.read_bytes()
            after = format_script(Source(before.decode(), str(file)), invocation.width).encode()
            if after == before:
                continue
            changed += 1
            if invocation.diff:
                _show_difference(str(file), before, after)
            elif invocation.check:
                print(f"Would reformat: {file}")
            else:
                _replace(file, after)
        except (OSError, UnicodeDecodeError, FlowSqlError) as error:
            failed += 1
            print(f"flowsql: error: {_told(error, file)}", file=sys.stderr)
    only_told = invocation.check or invocation.diff
    summary = _summary(changed, len(files) - changed - failed, failed, only_told)
    print(summary, file=sys.stderr if invocation.diff else sys.stdout)
    return EXIT_FAILED if failed or (changed and only_told) else EXIT_OK


def sql_files(paths: Sequence[str]) -> list[Path]:
    """The files of paths, each once: files as they are given, of folders all ``*.sql`` that are not hidden, sorted.

    Files of ``flowsql test`` are left out: the tables in them are no SQL.

    Raises:
        OSError: a path leads nowhere, or to a folder without such a file.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"'{path}' does not exist")
        files = list(_files_below(path)) if path.is_dir() else [path]
        if not files:
            raise FileNotFoundError(f"'{path}' holds no *.sql file")
        found |= dict.fromkeys(file for file in files if not file.name.endswith(_TESTS))
    return list(found)


def _project_files() -> list[Path]:
    """The files of the project around the working directory.

    Raises:
        OSError: there is none, or it has no SQL.
        BindError: its ``flowsql.toml`` is wrong.
    """
    from flowsql.pipeline.folder import open_project, project_around

    around = project_around(Path.cwd())
    if around is None:
        raise FileNotFoundError("give files or folders: no flowsql.toml here or above")
    return [Path(os.path.relpath(file)) for file in open_project(around).sql_files()]


def _files_below(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*.sql")):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if file.is_file() and not hidden:
            yield file


def _standard_input(invocation: FmtInvocation) -> int:
    name = "<stdin>"
    before = sys.stdin.buffer.read()
    try:
        after = format_script(Source(before.decode(), name), invocation.width).encode()
    except (UnicodeDecodeError, FlowSqlError) as error:
        print(f"flowsql: error: {_told(error, name)}", file=sys.stderr)
        return EXIT_FAILED
    if not (invocation.check or invocation.diff):
        sys.stdout.write(after.decode())
        return EXIT_OK
    if after == before:
        return EXIT_OK
    if invocation.diff:
        _show_difference(name, before, after)
    else:
        print(f"Would reformat: {name}")
    return EXIT_FAILED


def _told(error: Exception, file: Path | str) -> str:
    if isinstance(error, FlowSqlError):
        return error.render()
    if isinstance(error, UnicodeDecodeError):
        return f"Cannot read '{file}': it is not UTF-8 text (byte {error.start})"
    return f"Cannot format '{file}': {error.strerror if isinstance(error, OSError) else error}"


def _show_difference(name: str, before: bytes, after: bytes) -> None:
    import difflib

    lines = difflib.unified_diff(
        before.decode().splitlines(keepends=True), after.decode().splitlines(keepends=True), name, name
    )
    for line in lines:
        sys.stdout.write(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")


def _replace(file: Path, content: bytes) -> None:
    """Put a new content in the place of a file, whole or not at all; its mode stays, links to it stay links."""
    target = file.resolve()
    handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        shutil.copymode(target, scratch)
        os.replace(scratch, target)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def _summary(changed: int, unchanged: int, failed: int, only_told: bool) -> str:
    parts = [
        (changed, "would be reformatted" if only_told else "reformatted"),
        (unchanged, "already formatted" if only_told else "left unchanged"),
        (failed, "could not be formatted"),
    ]
    shown = [part for part in parts if part[0]] or parts[1:2]
    return ", ".join(f"{count} file{'' if count == 1 else 's'} {what}" for count, what in shown)
