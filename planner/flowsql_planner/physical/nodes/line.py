"""A line of EXPLAIN, and the texts that lines of several nodes are made of.

Source: Flink's ``StreamPhysicalRel.explainTerms`` of each node.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.expr import Expr, InputRef
from flowsql_core.graph.specs import WindowKind, WindowSpec
from flowsql_core.record import record
from flowsql_core.row import ChangelogMode
from flowsql_planner.logical.expression_text import ExpressionPrinter, duration_text

Attributes = list[tuple[str, str]]
#: Mode printed for a sink, which emits nothing.
NO_CHANGES = "NONE"


@record
class Line:
    """A node's line: operator name, attributes, and the changelog mode that it would show.

    ``net_changes``: a stateful node may leave out changes that later ones of the same batch undo.
    """

    name: str
    attributes: tuple[tuple[str, str], ...]
    mode: ChangelogMode | None
    net_changes: bool = False

    def text(self, changelog: bool = False, advice: Sequence[int] = ()) -> str:
        """``Name(key=[value], ...)``; a node without attributes is its bare name."""
        parts = [f"{key}=[{value}]" for key, value in self.attributes]
        if advice:
            parts.insert(0, f"advice=[{', '.join(map(str, advice))}]")
        if changelog:
            shown = NO_CHANGES if self.mode is None else str(self.mode)[1:-1]
            parts.append(f"changelogMode=[{shown}]")
            if self.net_changes:
                parts.append("netChanges=[true]")
        return f"{self.name}({', '.join(parts)})" if parts else self.name


def distribution_text(keys: Sequence[str]) -> str:
    """``hash[a, b]`` or ``single``."""
    return f"hash[{', '.join(keys)}]" if keys else "single"


def selected_text(exprs: Sequence[Expr], names: Sequence[str], printer: ExpressionPrinter) -> str:
    """``a, b + 1 AS c``: expressions with the names of their columns."""
    parts = []
    for expr, name in zip(exprs, names, strict=True):
        text = printer.print(expr)
        parts.append(text if isinstance(expr, InputRef) and text == name else f"{text} AS {name}")
    return ", ".join(parts)


def order_text(names: Sequence[str], keys: Sequence[tuple[int, bool, bool]]) -> str:
    """``a ASC, b DESC``."""
    return ", ".join(f"{names[index]} {'DESC' if descending else 'ASC'}" for index, descending, _ in keys)


def fetch_text(fetch: int | None) -> str:
    """The number of rows of a LIMIT."""
    return "unlimited" if fetch is None else str(fetch)


def group_by(names: Sequence[str], grouping: Sequence[int]) -> Attributes:
    """The attribute of grouping columns; none without them."""
    return [("groupBy", ", ".join(names[index] for index in grouping))] if grouping else []


def window_text(window: WindowSpec, names: Sequence[str], partition: Sequence[int] = ()) -> str:
    """A window over columns of an input."""
    if window.start_index is not None and window.end_index is not None:
        at = f"win_start=[{names[window.start_index]}], win_end=[{names[window.end_index]}]"
    else:
        assert window.time_index is not None
        at = f"time_col=[{names[window.time_index]}]"
    return window_at_text(window, at, [names[index] for index in partition])


def window_at_text(window: WindowSpec, at: str, partition: Sequence[str] = ()) -> str:
    """A window, ``at`` saying where its time is."""
    size, step = duration_text(window.size_ms), duration_text(window.step_ms)
    match window.kind:
        case WindowKind.TUMBLE:
            inner = f"{at}, size=[{size}]"
        case WindowKind.HOP:
            inner = f"{at}, size=[{size}], slide=[{step}]"
        case WindowKind.CUMULATE:
            inner = f"{at}, max_size=[{size}], step=[{step}]"
        case WindowKind.SESSION:
            keys = f", partition keys=[{', '.join(partition)}]" if partition else ""
            return f"SESSION({at}, gap=[{size}]{keys})"
    if window.offset_ms:
        inner += f", offset=[{duration_text(window.offset_ms)}]"
    return f"{window.kind.value}({inner})"
