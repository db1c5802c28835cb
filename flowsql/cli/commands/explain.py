"""``flowsql explain PATH``: the plans of a script or a project, and the tasks that would run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from flowsql.cli.arguments.explain import ExplainInvocation
from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from flowsql.cli.project import found_project, project_environment, refuse_profile, require_sql
from flowsql.cli.start import open_output, read_script, warn
from flowsql.configuration import command_line_configuration
from flowsql.pipeline.bound import BoundProject
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import RUNTIME_MODE, RuntimeMode
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.graph.job import JobGraph
from flowsql_core.secrets.hidden import hidden
from flowsql_core.span import Source
from flowsql_grammar import ast
from flowsql_planner.explain.job_graph import FORMS, PlacedJob, job_text

_EXPLAINED = (ast.Insert, ast.StatementSet, ast.QueryStatement)


def run(invocation: ExplainInvocation) -> int:
    """Print or write the plans; the exit code."""
    try:
        path = invocation.path
        is_project = path is None or (path != "-" and Path(path).is_dir())
        parts = list(_of_project(invocation) if is_project else _of_script(invocation))
        if not parts:
            raise BindError("nothing-to-explain", f"'{path or '.'}' has neither an INSERT nor a query.")
        jobs = [job for _, job in parts if job is not None]
        if invocation.format == "text":
            text = "\n\n".join(plan + ("" if job is None else f"\n{job_text([job])}") for plan, job in parts)
        else:
            if len(jobs) < len(parts):
                raise BindError("batch-picture", "Pictures are of streaming jobs; --format text explains batch mode.")
            text = FORMS[invocation.format](jobs)
        out = open_output(invocation.output)
        out.write(hidden(text).rstrip("\n") + "\n")
        out.flush()
        if out is not sys.stdout:
            out.close()
    except (OSError, UnicodeDecodeError) as error:
        print(f"flowsql: error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except FlowSqlError as error:
        print(f"flowsql: error: {error.render()}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def _of_script(invocation: ExplainInvocation) -> Iterator[tuple[str, PlacedJob | None]]:
    refuse_profile(invocation.profile, f"'{invocation.path}'")
    environment = TableEnvironment.of_configuration(command_line_configuration(invocation.settings, "tableau", warn))
    sources = [Source(read_script(name), name) for name in (invocation.init, invocation.path) if name is not None]
    for source in sources:
        yield from _explained(environment, source, invocation.format == "text")


def _of_project(invocation: ExplainInvocation) -> Iterator[tuple[str, PlacedJob | None]]:
    """Of each node, in the order of the run; nothing is kept of it in the folder."""
    opened = found_project(invocation.path, invocation.profile)
    require_sql(opened, invocation.path)
    if invocation.init is not None:
        raise OSError("a project has no initialization file: leave -i out")
    environment = project_environment(opened, invocation.settings)
    with opened.inside():
        bound = BoundProject(opened, environment.tried_out())
        for node in bound.order:
            text = f"-- {node.place}\n{bound.explain(node)}" if invocation.format == "text" else ""
            graph = None if bound.is_batch else bound.plan(node)
            yield text, PlacedJob(str(node.place), graph) if isinstance(graph, JobGraph) else None


def _explained(
    environment: TableEnvironment, source: Source, with_text: bool
) -> Iterator[tuple[str, PlacedJob | None]]:
    """Of each INSERT and query up to QUIT what EXPLAIN prints, and its job; None in batch mode."""
    with environment.located(source):
        for statement in environment.statements(source):
            if isinstance(statement, ast.ClientCommand):
                if statement.kind is ast.ClientCommandKind.QUIT:
                    return
                continue
            if not isinstance(statement, _EXPLAINED):
                environment.execute(statement, source)
                continue
            place = f"{source.name}:{source.position(statement.span.start)[0]}"
            text = f"-- {place}\n{environment.explain_tree(statement, source)}" if with_text else ""
            is_batch = environment.configuration.get(RUNTIME_MODE) is RuntimeMode.BATCH
            yield text, None if is_batch else PlacedJob(place, environment.job_of(statement, source))
