"""``flowsql plan``: what becomes of the state of jobs when a script changes, or a project since its last run."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_LOSES, EXIT_OK, EXIT_USAGE
from flowsql.cli.arguments.plan import PlanInvocation
from flowsql.cli.project import found_project, project_environment, require_sql
from flowsql.cli.start import warn
from flowsql.configuration import command_line_configuration
from flowsql.pipeline.bound import BoundProject
from flowsql.pipeline.changes import node_changes
from flowsql.pipeline.kept import Kept
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.graph.job import JobGraph
from flowsql_core.span import Source
from flowsql_runtime.checkpoint.evolution import Change, Fate, Remembered, compare, remembered_in, remembered_of
from flowsql_runtime.checkpoint.late_calls import with_late_calls
from flowsql_runtime.checkpoint.recovery import open_snapshot

_METADATA: Final = "_metadata"


def run(invocation: PlanInvocation) -> int:
    """Print the plan; the exit code says whether a restore would refuse it."""
    if invocation.old is None or invocation.new is None:
        return _plan_project(invocation)
    old_path, new_path = invocation.old, invocation.new
    try:
        new = _jobs(new_path, invocation)
        old = _remembered(old_path, new_path, invocation, len(new))
    except (OSError, UnicodeDecodeError) as error:
        print(f"flowsql: error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except FlowSqlError as error:
        print(f"flowsql: error: {error.render()}", file=sys.stderr)
        return EXIT_FAILED
    clean = True
    for number, (before, graph) in enumerate(zip(old, new, strict=True), 1):
        changes = compare(before, with_late_calls(before, graph))
        if len(new) > 1:
            print(f"{'' if number == 1 else chr(10)}Job {number}: {graph.name}")
        print(render(changes), end="")
        clean = clean and not _is_refused(changes)
    return EXIT_OK if clean else EXIT_LOSES


def _is_refused(changes: Sequence[Change]) -> bool:
    """Whether a restore needs further options."""
    return any(one.loses or one.restarts for one in changes)


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


def _plan_project(invocation: PlanInvocation) -> int:
    """Compare a project with its last run; nothing is started, and nothing is kept of it in the folder."""
    try:
        opened = found_project(invocation.old, invocation.profile)
        require_sql(opened, invocation.old)
        environment = project_environment(opened, invocation.settings)
        with opened.inside():
            bound = BoundProject(opened, environment.tried_out())
            kept = Kept(opened)
            bound.keys = kept.keys_of(bound.keys, bound.parts)
            changes = node_changes(bound, kept)
    except OSError as error:
        print(f"flowsql: error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except FlowSqlError as error:
        print(f"flowsql: error: {error.render()}", file=sys.stderr)
        return EXIT_FAILED
    width = max((len(one.where) for one in changes), default=0)
    clean = True
    for one in changes:
        reason = f"  {one.reason}" if one.reason else ""
        print(f"{one.kind.value:<9}  {one.where:<{width}}  {one.title}{reason}".rstrip())
        if one.operators is not None:
            print(textwrap.indent(render(one.operators), "    "), end="")
            clean = clean and not _is_refused(one.operators)
    return EXIT_OK if clean else EXIT_LOSES


def _jobs(script: str, invocation: PlanInvocation) -> list[JobGraph]:
    """The jobs of a script, each script in a session of its own.

    Raises:
        BindError: it has none.
    """
    environment = TableEnvironment.of_configuration(command_line_configuration(invocation.settings, "tableau", warn))
    found: list[JobGraph] = []
    for name in (invocation.init, script):
        if name is not None:
            text = Path(name).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
            found += environment.jobs_of(Source(text, name))
    if not found:
        raise BindError("no-job", f"'{script}' starts no job.", hint="it needs a query or an INSERT")
    return found


def _remembered(old_path: str, new_path: str, invocation: PlanInvocation, jobs: int) -> list[list[Remembered]]:
    """What ran before, by job.

    Raises:
        BindError: there are not as many jobs as in the new script.
        ConnectorError: the snapshot cannot be read.
    """
    path = Path(old_path)
    if path.is_file() and path.name != _METADATA:
        old = [remembered_of(graph) for graph in _jobs(old_path, invocation)]
    else:
        old = [remembered_in(open_snapshot(old_path.removesuffix(f"/{_METADATA}")).manifest)]
    if len(old) != jobs:
        raise BindError(
            "jobs-differ",
            f"'{new_path}' starts {jobs} jobs, '{old_path}' has {len(old)}: jobs are compared one by one.",
            hint="put the INSERTs into one statement set, or plan the script of each job by itself",
        )
    return old
