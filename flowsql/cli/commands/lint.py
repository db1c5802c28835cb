"""``flowsql lint PATH...``: what bites in scripts, before they run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from flowsql.cli.arguments.lint import LintInvocation
from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from flowsql.cli.project import found_project, project_environment, refuse_profile, require_sql
from flowsql.cli.start import warn
from flowsql.configuration import command_line_configuration
from flowsql.pipeline.folder import ProjectFolder
from flowsql.pipeline.shared_definitions import SharedDefinitions, Written
from flowsql.pipeline.variables import with_variables
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import FlowSqlError
from flowsql_core.span import Source
from flowsql_planner.lint.formats import FORMATS
from flowsql_planner.lint.model import Finding
from flowsql_planner.lint.registry import RULES, chosen

#: The path that means standard input, and its name in findings.
_STANDARD_INPUT, _ITS_NAME = "-", "<stdin>"


def run(invocation: LintInvocation) -> int:
    """Print the findings, or the rules; the exit code."""
    if invocation.lists_rules:
        width = max(len(rule.name) for rule in RULES)
        print("\n".join(f"{rule.name:{width}}  {rule.summary}" for rule in RULES))
        return EXIT_OK
    try:
        rules = chosen(invocation.select, invocation.ignore)
        found: list[Finding] = []
        for path in invocation.paths or (None,):
            environment, sources = _read_path(path, invocation)
            initial = _initial(invocation, environment)
            for source, definitions in sources:
                found += environment.lint_script(source, rules, [*initial, *definitions])
    except (OSError, UnicodeDecodeError) as error:
        print(f"flowsql: error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except FlowSqlError as error:
        print(f"flowsql: error: {error.render()}", file=sys.stderr)
        return EXIT_USAGE
    if found or invocation.format == "json":
        print(FORMATS[invocation.format](found))
    if found and invocation.format == "text":
        files = len({finding.source.name for finding in found})
        print(f"\nFound {_count(len(found), 'problem')} in {_count(files, 'file')}.")
    return EXIT_FAILED if found else EXIT_OK


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _read_path(
    path: str | None, invocation: LintInvocation
) -> tuple[TableEnvironment, list[tuple[Source, list[Written]]]]:
    """A session, and the scripts of a path in order, each with what it needs of others of its folder.

    A folder with a ``flowsql.toml`` brings its options and variables.

    Raises:
        OSError: the path leads to no script.
        BindError: a ``flowsql.toml`` is wrong, or a variable is not known.
    """
    if path is not None and not Path(path).is_dir():
        refuse_profile(invocation.profile, f"'{path}'")
        is_input = path == _STANDARD_INPUT
        source = Source(sys.stdin.read().replace("\r\n", "\n"), _ITS_NAME) if is_input else _read(Path(path))
        return _environment(invocation), [(source, [])]
    opened = found_project(path, invocation.profile)
    require_sql(opened, path)
    plain = opened.manifest is None
    environment = _environment(invocation) if plain else project_environment(opened, invocation.settings)
    sources = [_read(file) for file in _files(opened, path)]
    if opened.variables is not None:
        sources = [with_variables(source, opened.variables) for source in sources]
    shared = SharedDefinitions(sources)
    return environment, [(source, shared.needed_by(source)) for source in sources]


def _files(opened: ProjectFolder, path: str | None) -> list[Path]:
    """The scripts, under the names that lead there from where the command was called."""
    start = Path(os.path.relpath(opened.folder)) if path is None else Path(path)
    return [start / file.relative_to(opened.folder) for file in opened.sql_files()]


def _read(path: Path) -> Source:
    """A script.

    Raises:
        OSError: it cannot be read, or is no text.
    """
    try:
        return Source(path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"), str(path))
    except UnicodeDecodeError as error:
        raise OSError(f"'{path}' is not UTF-8 text (byte {error.start})") from None


def _environment(invocation: LintInvocation) -> TableEnvironment:
    """The session that all scripts begin in; none of them changes it."""
    configuration = command_line_configuration(invocation.settings, "tableau", warn)
    return TableEnvironment.of_configuration(configuration)


def _initial(invocation: LintInvocation, environment: TableEnvironment) -> list[Written]:
    """What the initialization file defines and sets.

    Raises:
        FlowSqlError: it holds a query or a change of data, or cannot be read.
    """
    if invocation.init is None:
        return []
    source = _read(Path(invocation.init))
    statements = list(environment.statements(source))
    for statement in statements:
        environment.check_initial(statement, source)
    return [(statement, source) for statement in statements]
