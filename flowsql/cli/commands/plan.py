"""``flowsql plan OLD NEW``: what becomes of the state of a job when its script changes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_LOSES, EXIT_OK, EXIT_USAGE
from flowsql.cli.arguments.plan import PlanInvocation
from flowsql.configuration import command_line_configuration
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.graph.job import JobGraph
from flowsql_core.span import Source
from flowsql_runtime.checkpoint.evolution import Change, Fate, Remembered, compare, remembered_in, remembered_of
from flowsql_runtime.checkpoint.recovery import open_snapshot

_METADATA: Final = "_metadata"


def run(invocation: PlanInvocation) -> int:
    """Print the plan; the exit code says whether a restore would refuse it."""
    try:
        new = _jobs(invocation.new, invocation)
        old = _remembered(invocation, len(new))
    except (OSError, UnicodeDecodeError) as error:
        print(f"flowsql: error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except FlowSqlError as error:
        print(f"flowsql: error: {error.render()}", file=sys.stderr)
        return EXIT_FAILED
    clean = True
    for number, (before, graph) in enumerate(zip(old, new, strict=True), 1):
        changes = compare(before, graph)
        if len(new) > 1:
            print(f"{'' if number == 1 else chr(10)}Job {number}: {graph.name}")
        print(render(changes), end="")
        clean = clean and not any(one.loses or one.restarts for one in changes)
    return EXIT_OK if clean else EXIT_LOSES


def render(changes: Sequence[Change]) -> str:
    """A line an operator, its reasons below; then the options that allow what a restore would refuse."""
    if not changes:
        return "Nothing keeps state.\n"
    width = max(len(one.uid) for one in changes)
    lines = []
    for one in changes:
        size = "" if one.size_bytes is None else f"{one.size_bytes:,} bytes"
        lines.append(f"{one.fate.value:<8}  {one.uid:<{width}}  {size:>16}  {one.name}".rstrip())
        lines += [f"{'':<10}{reason}" for reason in one.reasons]
    refused = [option for option, wanted in _options(changes) if wanted]
    if refused:
        lines.append(f"A restore needs {' and '.join(refused)}.")
    return "".join(f"{line}\n" for line in lines)


def _options(changes: Sequence[Change]) -> list[tuple[str, bool]]:
    rebuilt = any(one.fate is Fate.REBUILT for one in changes)
    migrated = any(one.restarts for one in changes) and not rebuilt
    dropped = any(one.loses and one.fate is not Fate.REBUILT for one in changes)
    return [
        ("'flowsql.state-recovery.changed-state' = 'rebuild'", rebuilt),
        ("'flowsql.state-recovery.changed-state' = 'migrate'", migrated),
        ("'execution.state-recovery.ignore-unclaimed-state' = 'true'", dropped),
    ]


def _jobs(script: str, invocation: PlanInvocation) -> list[JobGraph]:
    """The jobs of a script, each script in a session of its own.

    Raises:
        BindError: it has none.
    """

    def warn(text: str) -> None:
        print(f"[WARNING] {text}", file=sys.stderr)

    environment = TableEnvironment.of_configuration(command_line_configuration(invocation.settings, "tableau", warn))
    found: list[JobGraph] = []
    for name in (invocation.init, script):
        if name is not None:
            text = Path(name).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
            found += environment.jobs_of(Source(text, name))
    if not found:
        raise BindError("no-job", f"'{script}' starts no job.", hint="it needs a query or an INSERT")
    return found


def _remembered(invocation: PlanInvocation, jobs: int) -> list[list[Remembered]]:
    """What ran before, by job.

    Raises:
        BindError: there are not as many jobs as in the new script.
        ConnectorError: the snapshot cannot be read.
    """
    path = Path(invocation.old)
    if path.is_file() and path.name != _METADATA:
        old = [remembered_of(graph) for graph in _jobs(invocation.old, invocation)]
    else:
        old = [remembered_in(open_snapshot(invocation.old.removesuffix(f"/{_METADATA}")).manifest)]
    if len(old) != jobs:
        raise BindError(
            "jobs-differ",
            f"'{invocation.new}' starts {jobs} jobs, '{invocation.old}' has {len(old)}: jobs are compared one by one.",
            hint="put the INSERTs into one statement set, or plan the script of each job by itself",
        )
    return old
