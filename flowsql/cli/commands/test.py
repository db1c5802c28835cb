"""``flowsql test``: tests of SQL in SQL files."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from flowsql.cli.arguments.test import TestInvocation
from flowsql.pipeline.folder import open_project, project_around
from flowsql.testing.files import SUFFIX, read_file
from flowsql.testing.run import Outcome, run_file
from flowsql_core.errors import FlowSqlError


def run(invocation: TestInvocation) -> int:
    """Run the tests and tell what is wrong; the exit code."""
    started = time.perf_counter()
    try:
        paths = found_files(invocation.paths) if invocation.paths else _project_files()
    except FlowSqlError as error:
        print(f"flowsql test: error: {error.render()}", file=sys.stderr)
        return EXIT_USAGE
    except OSError as error:
        print(f"flowsql test: error: cannot read '{error.filename}': {error.strerror}", file=sys.stderr)
        return EXIT_USAGE
    if not paths:
        print(
            f"flowsql test: error: no file ends with '{SUFFIX}' in {', '.join(invocation.paths) or '.'}",
            file=sys.stderr,
        )
        return EXIT_USAGE
    options = dict(invocation.settings)
    ran: list[tuple[Path, list[Outcome]]] = []
    broken = 0
    for path in paths:
        try:
            file = read_file(path)
            outcomes = run_file(file, options, _named(invocation.name), invocation.update, invocation.profile)
        except (FlowSqlError, OSError, UnicodeDecodeError) as error:
            broken += 1
            reason = error.render() if isinstance(error, FlowSqlError) else str(error)
            print(f"{path}: this file could not be run\n{reason}\n")
            continue
        ran.append((path, outcomes))
        _tell(path, outcomes, invocation.verbose)
    every = [outcome for _, outcomes in ran for outcome in outcomes]
    failed = sum(not outcome.passed for outcome in every)
    if invocation.junit is not None:
        Path(invocation.junit).write_bytes(junit_xml(ran))
    print(_summary(every, failed, broken, time.perf_counter() - started))
    if not every and not broken:
        return EXIT_USAGE
    return EXIT_FAILED if failed or broken else EXIT_OK


def _named(part: str) -> Callable[[str], bool]:
    return lambda name: part in name


def _project_files() -> list[Path]:
    """The tests of the project around the working directory; those below it where there is no project.

    Raises:
        BindError: the ``flowsql.toml`` is wrong.
    """
    around = project_around(Path.cwd())
    if around is None:
        return found_files((".",))
    return [Path(os.path.relpath(path)) for path in open_project(around, tests=True).test_files()]


def found_files(names: tuple[str, ...]) -> list[Path]:
    """Files as they are named, and those of folders, sorted.

    Raises:
        FileNotFoundError: there is no such file or folder.
    """
    found: list[Path] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            found += sorted(path.rglob(f"*{SUFFIX}"))
        elif path.exists():
            found.append(path)
        else:
            raise FileNotFoundError(2, "No such file or directory", name)
    return list(dict.fromkeys(found))


def _tell(path: Path, outcomes: list[Outcome], verbose: bool) -> None:
    if not outcomes:
        return
    passed = sum(outcome.passed for outcome in outcomes)
    updated = sum(len(outcome.updates) for outcome in outcomes)
    wrong = f", {len(outcomes) - passed} failed" if passed < len(outcomes) else ""
    print(f"{path}: {passed} passed{wrong}{f', {updated} tables written' if updated else ''}")
    for outcome in outcomes:
        if verbose and outcome.passed:
            print(f"  ok    {outcome.name} ({outcome.seconds * 1000:.0f} ms)")
        if not outcome.passed:
            print(f"  FAIL  {outcome.name}\n\n{_indented(outcome.error or '')}\n")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def _summary(outcomes: list[Outcome], failed: int, broken: int, seconds: float) -> str:
    parts = [f"{len(outcomes) - failed} passed"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{broken} {'file' if broken == 1 else 'files'} could not be run"] if broken else []
    return f"{', '.join(parts)} in {seconds:.2f} s"


def junit_xml(ran: list[tuple[Path, list[Outcome]]]) -> bytes:
    """A report as JUnit writes it: a suite a file, a case a test."""
    root = ElementTree.Element("testsuites")
    for path, outcomes in ran:
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=str(path),
            tests=str(len(outcomes)),
            failures=str(sum(not outcome.passed for outcome in outcomes)),
            time=f"{sum(outcome.seconds for outcome in outcomes):.3f}",
        )
        for outcome in outcomes:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=str(path),
                name=outcome.name,
                file=str(path),
                line=str(outcome.line),
                time=f"{outcome.seconds:.3f}",
            )
            if outcome.error is not None:
                failure = ElementTree.SubElement(case, "failure", message=outcome.error.splitlines()[0])
                failure.text = outcome.error
    made: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return made
