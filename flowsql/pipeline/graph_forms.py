"""The graph of a project before it runs: in order as text, as JSON, and as a chart of Mermaid."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from flowsql.pipeline.bound import BoundProject
from flowsql.pipeline.outcome import Outcome
from flowsql_core.catalog import ObjectPath


def graph_text(bound: BoundProject, outcomes: Sequence[Outcome]) -> str:
    """A line a node: where it stands, what it writes, why it would run, and behind which others."""
    word = "runs" if bound.is_batch else "starts"
    lines = [
        (
            str(each.node.place),
            each.node.title,
            f"{word}: {each.reason}" if each.reason else "unchanged",
            ", ".join(str(other.place) for other in bound.before[each.node]),
        )
        for each in outcomes
    ]
    widths = [max((len(line[column]) for line in lines), default=0) for column in range(2)]
    return "\n".join(
        f"{node.ljust(widths[0])}  {table.ljust(widths[1])}  {text}{f' (behind {behind})' if behind else ''}"
        for node, table, text, behind in lines
    )


def graph_json(bound: BoundProject, outcomes: Sequence[Outcome]) -> str:
    """``{"project", "profile", "mode", "nodes": [{"node", "tables", "reads", "behind", "runs", "reason"}]}``."""
    profile = bound.opened.profile
    form: dict[str, Any] = {
        "project": bound.opened.name,
        "profile": None if profile is None else profile.name,
        "mode": "batch" if bound.is_batch else "streaming",
        "nodes": [
            {
                "node": str(each.node.place),
                "tables": [str(path) for path in each.node.tables],
                "reads": [str(path) for path in bound.reads[each.node]],
                "behind": [str(other.place) for other in bound.before[each.node]],
                "runs": bool(each.reason),
                "reason": each.reason,
            }
            for each in outcomes
        ],
    }
    return json.dumps(form, indent=2, ensure_ascii=False)


def graph_mermaid(bound: BoundProject, outcomes: Sequence[Outcome]) -> str:
    """A flow chart: a drum a table, a box a node."""
    lines = ["flowchart LR"]
    tables: dict[ObjectPath, str] = {}
    for each in outcomes:
        for path in (*bound.reads[each.node], *each.node.tables):
            if path not in tables:
                tables[path] = f"t{len(tables)}"
                lines.append(f'  {tables[path]}[("{_label(path.name)}")]')
    for number, each in enumerate(outcomes):
        lines.append(f'  n{number}["{_label(str(each.node.place))}"]')
        lines += [f"  {tables[path]} --> n{number}" for path in bound.reads[each.node]]
        lines += [f"  n{number} --> {tables[path]}" for path in each.node.tables]
    return "\n".join(lines)


def _label(text: str) -> str:
    return re.sub(r'["<>#]', lambda found: f"#{ord(found[0])};", text)


GRAPH_FORMS: Final[dict[str, Callable[[BoundProject, Sequence[Outcome]], str]]] = {
    "text": graph_text,
    "json": graph_json,
    "mermaid": graph_mermaid,
}
