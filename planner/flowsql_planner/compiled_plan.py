"""Compiled plans: a job as a versioned JSON text that later versions of the planner do not plan again.

{"flowsqlPlan": 1, "sinks": ["c.d.t"], "job": {"$": "JobGraph", ...}}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from flowsql_core.errors import BindError, FlowSqlError, NotSupportedYetError
from flowsql_core.graph.job import JobGraph
from flowsql_core.json_form import from_json, to_json
from flowsql_core.record import record
from flowsql_core.secrets.plain import refuse_plain_secrets

PLAN_VERSION = 1
_KEY = "flowsqlPlan"


@record
class CompiledPlan:
    """A job and the names of the tables that it writes to."""

    job: JobGraph
    sinks: tuple[str, ...]

    def to_text(self) -> str:
        """The JSON text.

        Raises:
            NotSupportedYetError: the job holds Python objects of this process.
            BindError: a table's options hold a secret itself, not a reference to it.
        """
        if self.job.resources:
            raise NotSupportedYetError("COMPILE PLAN of a job that reads Python objects")
        form = {_KEY: PLAN_VERSION, "sinks": list(self.sinks), "job": to_json(self.job)}
        for table in _tables(form["job"]):
            owner = f"table '{'.'.join(table['path'])}'"
            refuse_plain_secrets(((key, value) for key, value in table["options"]), owner, "the compiled plan")
        return json.dumps(form, ensure_ascii=False, indent=2) + "\n"


def _tables(form: Any) -> Iterator[dict[str, Any]]:
    """The tables in the JSON form of a job."""
    if isinstance(form, list):
        for item in form:
            yield from _tables(item)
    elif isinstance(form, dict):
        if form.get("$") == "TableSpec":
            yield form
        for item in form.values():
            yield from _tables(item)


def compile_plan(job: JobGraph, sinks: Sequence[str]) -> CompiledPlan:
    """The plan of a job."""
    return CompiledPlan(job, tuple(sinks))


def read_plan(text: str) -> CompiledPlan:
    """The plan of a JSON text.

    Raises:
        BindError: the text is no plan, or one of a version that is not known here.
    """
    try:
        form = json.loads(text)
    except ValueError as error:
        raise BindError("bad-plan", f"The plan is not JSON: {error}") from None
    if not isinstance(form, dict) or _KEY not in form:
        hint = "Flink's own plans do not run here: compile the statement again"
        raise BindError("bad-plan", "The text is JSON, but no compiled plan of FlowSQL.", hint=hint)
    if form[_KEY] != PLAN_VERSION:
        raise BindError("bad-plan", f"The plan is of version {form[_KEY]}, this FlowSQL reads version {PLAN_VERSION}.")
    try:
        job = from_json(form["job"])
        sinks = tuple(str(name) for name in form["sinks"])
    except (KeyError, TypeError, FlowSqlError) as error:
        raise BindError("bad-plan", f"The compiled plan cannot be read: {error}") from None
    if not isinstance(job, JobGraph):
        raise BindError("bad-plan", "The compiled plan holds no job.")
    return CompiledPlan(job, sinks)
