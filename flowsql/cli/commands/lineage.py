"""``flowsql lineage PATH``: where the columns that a script or a pipeline writes come from."""

from __future__ import annotations

import sys
from pathlib import Path

from flowsql.cli.arguments.lineage import LineageInvocation
from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from flowsql.cli.commands.run import inside
from flowsql.configuration import command_line_configuration
from flowsql.pipeline.project import sql_files
from flowsql.pipeline.run import Pipeline
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.span import Source
from flowsql_planner.lineage.formats import render_lineage
from flowsql_planner.lineage.model import Lineage


def run(invocation: LineageInvocation) -> int:
    """Print or write the lineage; the exit code."""
    try:
        found = _of_project(invocation) if Path(invocation.path).is_dir() else _of_script(invocation)
        text = render_lineage(found, invocation.format).rstrip("\n") + "\n"
        if invocation.output is None:
            print(text, end="")
        else:
            Path(invocation.output).write_text(text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        print(f"flowsql: error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except FlowSqlError as error:
        print(f"flowsql: error: {error.render()}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def _of_script(invocation: LineageInvocation) -> list[Lineage]:
    environment = _environment(invocation)
    found: list[Lineage] = []
    for name in (invocation.init, invocation.path):
        if name is not None:
            text = Path(name).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
            found += environment.lineage_of(Source(text, name))
    if not found:
        hint = "it needs a query or an INSERT"
        raise BindError("no-lineage", f"'{invocation.path}' moves no rows.", hint=hint)
    return found


def _of_project(invocation: LineageInvocation) -> list[Lineage]:
    """All nodes, bound as a run binds them; nothing is kept of it in the folder."""
    folder = Path(invocation.path).absolute()
    if not sql_files(folder):
        raise FileNotFoundError(f"'{invocation.path}' holds no *.sql file")
    if invocation.init is not None:
        raise OSError("a pipeline has no initialization file: leave -i out")
    environment = _environment(invocation, ("execution.runtime-mode", "batch"))
    with inside(folder):
        return Pipeline(folder, environment).lineage()


def _environment(invocation: LineageInvocation, *settings: tuple[str, str]) -> TableEnvironment:
    def warn(text: str) -> None:
        print(f"[WARNING] {text}", file=sys.stderr)

    configuration = command_line_configuration((*settings, *invocation.settings), "tableau", warn)
    return TableEnvironment.of_configuration(configuration)
