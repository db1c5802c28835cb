"""The forms in which findings are told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from flowsql_planner.lint.model import Finding


def _text(found: Sequence[Finding]) -> str:
    return "\n\n".join(map(_report, found))


def _report(finding: Finding) -> str:
    """Place, rule and message in one line, as editors read them; then the text, why, and what to write instead."""
    line, column = finding.position
    name = f"error[{finding.rule}]" if finding.is_error else finding.rule
    _, frame = finding.source.frame(finding.span).split("\n", 1)
    head = f"{finding.source.name}:{line}:{column}: {name}: {_one_line(finding.message)}"
    margin = " " * len(str(line))
    return f"{head}\n{frame}\n{margin} = reason: {finding.reason}\n{margin} = remedy: {finding.remedy}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _json(found: Sequence[Finding]) -> str:
    return json.dumps([_fields(finding) for finding in found], indent=2, ensure_ascii=False)


def _fields(finding: Finding) -> dict[str, object]:
    line, column = finding.position
    end_line, end_column = finding.source.position(finding.span.end)
    return {
        "file": finding.source.name,
        "line": line,
        "column": column,
        "endLine": end_line,
        "endColumn": end_column,
        "rule": finding.rule,
        "error": finding.is_error,
        "message": finding.message,
        "reason": finding.reason,
        "remedy": finding.remedy,
    }


def _github(found: Sequence[Finding]) -> str:
    return "\n".join(map(_annotation, found))


def _annotation(finding: Finding) -> str:
    """A workflow command of GitHub Actions, which shows the finding at its line of a change."""
    line, column = finding.position
    level = "error" if finding.is_error else "warning"
    place = f"file={_property(finding.source.name)},line={line},col={column},title={_property(finding.rule)}"
    return f"::{level} {place}::{_data(f'{finding.message} {finding.reason}; {finding.remedy}.')}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


#: By the names under which the command asks for them.
FORMATS: Final[Mapping[str, Callable[[Sequence[Finding]], str]]] = {"text": _text, "json": _json, "github": _github}
