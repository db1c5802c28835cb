"""``CompiledPlan``: a job as a text that later versions of the planner do not plan again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowsql.common.public_api import public_api
from flowsql_core.errors import BindError, NotSupportedYetError

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment
    from flowsql.table.table_result import TableResult


@public_api
class CompiledPlan:
    """A planned job. Made by ``compile_plan_sql`` and ``compile_plan``, read by ``load_plan``."""

    def __init__(self, environment: TableEnvironment, plan: Any) -> None:
        self._environment = environment
        self._plan = plan

    def as_json_string(self) -> str:
        """The plan as JSON.

        Raises:
            NotSupportedYetError: the job holds Python objects of this process.
        """
        text: str = self._plan.to_text()
        return text

    def as_smile_bytes(self) -> bytes:
        """Not there: plans are JSON."""
        raise NotSupportedYetError("CompiledPlan.as_smile_bytes", hint="as_json_string() gives the plan as text")

    def write_to_file(self, file: str | Path, ignore_if_exists: bool = False) -> None:
        """Write the JSON; a file that is there already is refused, or left as it is."""
        from flowsql.table.session.plan_files import may_write, write_plan

        if may_write(str(file), ignore_if_exists, self._environment.configuration, None):
            write_plan(self._plan, str(file))

    def get_flink_version(self) -> str:
        """The version of Flink whose plans these follow."""
        return "2.3"

    def print_json_string(self) -> None:
        """Write the JSON to standard output."""
        print(self.as_json_string())

    def execute(self) -> TableResult:
        """Start the job."""
        return self._environment.execute_compiled(self._plan)

    def explain(self, *extra_details: object) -> str:
        """The job's operators, one a line, with what they read."""
        if extra_details:
            raise BindError("bad-detail", "A compiled plan is explained without further details.")
        lines = []
        for vertex in self._plan.job.vertices:
            lines += [f"[{node.id}]:{node.name}" for node in vertex.operators]
        return "== Compiled Plan ==\n" + "\n".join(lines) + "\n"

    def print_explain(self, *extra_details: object) -> None:
        """Write :meth:`explain` to standard output."""
        print(self.explain(*extra_details))

    def __str__(self) -> str:
        return self.as_json_string()
