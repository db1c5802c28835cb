"""COMPILE PLAN and EXECUTE PLAN: compiled plans in files."""

from __future__ import annotations

import os
from pathlib import Path

from flowsql_core.config import Configuration, option, parse_bool
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.span import Span
from flowsql_planner.compiled_plan import CompiledPlan, read_plan

FORCE_RECOMPILE = option(
    "table.plan.force-recompile", parse_bool, False, "Whether COMPILE PLAN overwrites a plan that is there already."
)


def plan_file(text: str) -> Path:
    """The file of a path or a ``file:`` URI."""
    return Path(text.removeprefix("file://") if text.startswith("file://") else text.removeprefix("file:"))


def may_write(path: str, if_not_exists: bool, configuration: Configuration, at: Span | None) -> bool:
    """Whether a plan is to be written; BindError when one stands there that nobody allowed to replace."""
    if not plan_file(path).exists():
        return True
    if if_not_exists:
        return False
    if configuration.get(FORCE_RECOMPILE):
        return True
    raise BindError(
        "plan-exists",
        f"Cannot overwrite the plan file '{path}'. Either manually remove the file or, if you're debugging your job, "
        "set the option 'table.plan.force-recompile' to true.",
        at,
    )


def write_plan(plan: CompiledPlan, path: str) -> None:
    """Write the file; readers see all of it or nothing."""
    file = plan_file(path)
    text = plan.to_text()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.with_name(f".{file.name}.{os.getpid()}")
        scratch.write_text(text, encoding="utf-8")
        os.replace(scratch, file)
    except OSError as error:
        raise ConnectorError("plan-file", f"Cannot write the plan file '{path}': {error.strerror}") from error


def load_plan(path: str, at: Span | None) -> CompiledPlan:
    """Read a plan from its file.

    Raises:
        BindError: no such file, or it holds no plan.
    """
    try:
        text = plan_file(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BindError(
            "plan-not-found", f"Failed to execute EXECUTE PLAN '{path}' statement: {error.strerror}.", at
        ) from None
    try:
        return read_plan(text)
    except BindError as error:
        error.at = at
        raise
