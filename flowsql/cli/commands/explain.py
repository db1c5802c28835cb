"""``flowsql explain PATH``: the plans of a script, and the tasks that would run."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from flowsql.cli.arguments.explain import ExplainInvocation
from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from flowsql.cli.start import open_output, read_script, warn
from flowsql.configuration import command_line_configuration
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import RUNTIME_MODE, RuntimeMode
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.span import Source
from flowsql_grammar import ast
from flowsql_planner.explain.job_graph import FORMS, PlacedJob, job_text

_EXPLAINED = (ast.Insert, ast.StatementSet, ast.QueryStatement)


def run(invocation: ExplainInvocation) -> int:
    """Print or write the plans; the exit code."""
    try:
        configuration = command_line_configuration(invocation.settings, "tableau", warn)
        environment = TableEnvironment.of_configuration(configuration)
        sources = [Source(read_script(name), name) for name in (invocation.init, invocation.path) if name is not None]
        parts = [part for source in sources for part in _explained(environment, source, invocation.format == "text")]
        if not parts:
            raise BindError("nothing-to-explain", f"'{invocation.path}' has neither an INSERT nor a query.")
        jobs = [job for _, job in parts if job is not None]
        if invocation.format == "text":
            text = "\n\n".join(plan + ("" if job is None else f"\n{job_text([job])}") for plan, job in parts)
        else:
            if len(jobs) < len(parts):
                raise BindError("batch-picture", "Pictures are of streaming jobs; --format text explains batch mode.")
            text = FORMS[invocation.format](jobs)
        out = open_output(invocation.output)
        out.write(text.rstrip("\n") + "\n")
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
