"""How processes of one user talk about jobs: one line of JSON asks, one line answers, then the connection ends.

To ``sample`` many lines answer, until the job ends or whoever asked closes the connection.

::

    {"flowsql": 1, "method": "savepoint", "arguments": {"job": "6d96...", "directory": "/var/savepoints"}}
    {"flowsql": 1, "answer": {"path": "/var/savepoints/savepoint-6d9682-0f..."}}
    {"flowsql": 1, "error": {"code": "job-not-found", "message": "Could not find Flink job (6d96...)", "hint": null}}

The number is the version of this form. Who reads another one says so in an error of the version that it speaks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from flowsql_core.errors import ExecutionError, FlowSqlError

VERSION: Final = 1
#: A longer line is nobody's request.
LONGEST_LINE_BYTES: Final = 1 << 20


def encode_request(method: str, arguments: Mapping[str, Any]) -> bytes:
    """A request's line."""
    return _line({"method": method, "arguments": dict(arguments)})


def encode_answer(answer: Mapping[str, Any]) -> bytes:
    """An answer's line."""
    return _line({"answer": dict(answer)})


def encode_error(error: FlowSqlError) -> bytes:
    """The line of a request that failed."""
    return _line({"error": {"code": error.code, "message": error.message, "hint": error.hint}})


def decode_request(line: bytes) -> tuple[str, Mapping[str, Any]]:
    """Method and arguments.

    Raises:
        ExecutionError: the line is no request of this version.
    """
    found = _decode(line)
    method, arguments = found.get("method"), found.get("arguments", {})
    if not isinstance(method, str) or not isinstance(arguments, dict):
        raise _bad("the line has no method with arguments")
    return method, arguments


def decode_answer(line: bytes) -> Mapping[str, Any]:
    """The answer.

    Raises:
        ExecutionError: what the other side says went wrong, or the line is no answer of this version.
    """
    found = _decode(line)
    error, answer = found.get("error"), found.get("answer")
    if isinstance(error, dict):
        raise ExecutionError(str(error.get("code")), str(error.get("message")), hint=error.get("hint"))
    if not isinstance(answer, dict):
        raise _bad("the line has neither an answer nor an error")
    return answer


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps({"flowsql": VERSION, **content}, separators=(",", ":")).encode() + b"\n"


def _decode(line: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict) or "flowsql" not in found:
        raise _bad("the line is not a JSON object of the control protocol")
    if found["flowsql"] != VERSION:
        raise ExecutionError(
            "control-version",
            f"The process speaks version {found['flowsql']!r} of the control protocol; this one speaks {VERSION}.",
            hint="both processes need the same release of FlowSQL",
        )
    return found


def _bad(why: str) -> ExecutionError:
    return ExecutionError("control-protocol", f"Not understood: {why}.")
