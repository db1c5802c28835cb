"""Options of Python functions."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from flowsql_core.config import Configuration, option, parse_duration_ms, parse_enum, parse_text
from flowsql_core.record import record
from flowsql_runtime.python.archives import Archive, parse_archives


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


def _lasting(text: str) -> int:
    value = parse_duration_ms(text)
    if value < 1:
        raise ValueError("expected at least 1 ms")
    return value


EXECUTION_MODE = option(
    "python.execution-mode",
    parse_enum(ExecutionMode),
    ExecutionMode.AUTO,
    "Where Python functions run: thread, in the task's own thread (breakpoints stop); process, in a worker process of "
    "each subtask; auto, row-wise functions in a process from parallelism 2 on, all others in the thread.",
)
_NO_ARCHIVES: tuple[Archive, ...] = ()
ARCHIVES = option(
    "python.archives",
    parse_archives,
    _NO_ARCHIVES,
    "Archives of files that Python functions open by relative paths, separated by ','; a.zip#data appears in the "
    "folder data. Row-wise functions of SQL and the Table API then run in worker processes.",
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


class RetryStrategy(enum.Enum):
    """``table.exec.async-scalar.retry-strategy``."""

    NO_RETRY = "NO_RETRY"
    FIXED_DELAY = "FIXED_DELAY"


ASYNC_CONCURRENCY = option(
    "table.exec.async-scalar.max-concurrent-operations",
    _positive,
    10,
    "Calls of an asynchronous Python function that may go on at once in one subtask.",
)
ASYNC_TIMEOUT_MS = option(
    "table.exec.async-scalar.timeout",
    _lasting,
    180_000,
    "How long the call of an asynchronous function for one row may take, with all its retries.",
)
ASYNC_RETRY_STRATEGY = option(
    "table.exec.async-scalar.retry-strategy",
    parse_enum(RetryStrategy),
    RetryStrategy.FIXED_DELAY,
    "Whether a call of an asynchronous function that fails is made again: FIXED_DELAY or NO_RETRY.",
)
ASYNC_RETRIES = option(
    "table.exec.async-scalar.max-attempts",
    _positive,
    3,
    "How often a failing call of an asynchronous function is made again before the job fails.",
)
ASYNC_RETRY_DELAY_MS = option(
    "table.exec.async-scalar.retry-delay",
    _lasting,
    100,
    "How long a call of an asynchronous function that failed waits before it is made again.",
)


@record
class AsyncOptions:
    """How the calls of an asynchronous function are made: ``table.exec.async-scalar.*``."""

    concurrency: int
    timeout_ms: int
    retries: int
    retry_delay_ms: int


def async_options(parameters: Mapping[str, str]) -> AsyncOptions:
    """What a job's options say."""
    configuration = Configuration(values=dict(parameters))
    again = configuration.get(ASYNC_RETRY_STRATEGY) is RetryStrategy.FIXED_DELAY
    return AsyncOptions(
        configuration.get(ASYNC_CONCURRENCY),
        configuration.get(ASYNC_TIMEOUT_MS),
        configuration.get(ASYNC_RETRIES) if again else 0,
        configuration.get(ASYNC_RETRY_DELAY_MS),
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
