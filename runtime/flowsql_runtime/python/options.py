"""Options of Python functions."""

from __future__ import annotations

import enum

from flowsql_core.config import option, parse_enum, parse_text


class ExecutionMode(enum.Enum):
    """``python.execution-mode``."""

    AUTO = "auto"
    THREAD = "thread"
    PROCESS = "process"


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("expected a number of at least 1")
    return value


EXECUTION_MODE = option(
    "python.execution-mode",
    parse_enum(ExecutionMode),
    ExecutionMode.AUTO,
    "Where Python functions run: thread, in the task's own thread (breakpoints stop); process, in a worker process of "
    "each subtask; auto, row-wise functions in a process from parallelism 2 on, all others in the thread.",
)
ARROW_BATCH_SIZE = option(
    "python.fn-execution.arrow.batch.size",
    _positive,
    10_000,
    "Rows that a pandas or arrow function gets at most in one call.",
)
BUNDLE_SIZE = option(
    "python.fn-execution.bundle.size",
    _positive,
    1_000,
    "Rows that a Python aggregate takes in before it emits one net change of each group. 1: it emits each change.",
)
BUNDLE_TIME_MS = option(
    "python.fn-execution.bundle.time",
    _positive,
    1_000,
    "Milliseconds that rows wait for the others of their bundle in a Python aggregate, at most.",
)
GLOBAL_JOB_PARAMETERS = option(
    "pipeline.global-job-parameters",
    parse_text,
    "",
    "Parameters for FunctionContext.get_job_parameter: key:value pairs, separated by ','.",
)


def job_parameters(parameters: dict[str, str]) -> dict[str, str]:
    """What functions may ask for: all options, the pairs of ``pipeline.global-job-parameters`` on top."""
    return parameters | global_job_parameters(parameters.get(GLOBAL_JOB_PARAMETERS.key, ""))


def global_job_parameters(text: str) -> dict[str, str]:
    """The pairs of ``pipeline.global-job-parameters``; of two with one name the later counts.

    A value in single quotes may hold commas and colons; two quotes inside stand for one.
    """
    parts: list[str] = [""]
    quoted = False
    for letter in text:
        if letter == "'":
            quoted = not quoted
        if letter == "," and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    found = {}
    for part in parts:
        key, colon, value = part.partition(":")
        if colon:
            found[_unquoted(key.strip())] = _unquoted(value.strip())
    return found


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text
