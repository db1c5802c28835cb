"""``flowsql lineage PATH``: where the columns that a script or a project writes come from."""

from __future__ import annotations

import sys
from pathlib import Path

from flowsql.cli.arguments.lineage import LineageInvocation
from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from flowsql.cli.project import found_project, project_environment, refuse_profile, require_sql
from flowsql.cli.start import warn
from flowsql.configuration import command_line_configuration
from flowsql.pipeline.bound import BoundProject
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.span import Source
from flowsql_planner.lineage.formats import render_lineage
from flowsql_planner.lineage.model import Lineage


def run(invocation: LineageInvocation) -> int:
    """Print or write the lineage; the exit code."""
    try:
        path = invocation.path
        is_script = path is not None and not Path(path).is_dir()
        found = _of_script(invocation, path) if path is not None and is_script else _of_project(invocation)
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


def _of_script(invocation: LineageInvocation, path: str) -> list[Lineage]:
    refuse_profile(invocation.profile, f"'{path}'")
    configuration = command_line_configuration(invocation.settings, "tableau", warn)
    environment = TableEnvironment.of_configuration(configuration)
    found: list[Lineage] = []
    for name in (invocation.init, path):
        if name is not None:
            text = Path(name).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
            found += environment.lineage_of(Source(text, name))
    if not found:
        hint = "it needs a query or an INSERT"
        raise BindError("no-lineage", f"'{path}' moves no rows.", hint=hint)
    return found


def _of_project(invocation: LineageInvocation) -> list[Lineage]:
    """All nodes, bound as a run binds them; nothing is kept of it in the folder."""
    opened = found_project(invocation.path, invocation.profile)
    require_sql(opened, invocation.path)
    if invocation.init is not None:
        raise OSError("a project has no initialization file: leave -i out")
    environment = project_environment(opened, invocation.settings)
    with opened.inside():
        return BoundProject(opened, environment.tried_out()).lineage()
