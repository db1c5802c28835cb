"""Canonical texts of columns and conditions, from the tables upwards: see ``flowsql_core.graph.lineage``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

from flowsql_core.expr import AggregateCall, Expr, conjuncts
from flowsql_core.graph.lineage import PLACED, Lineage
from flowsql_core.python_call import aggregate_name, aggregated_with
from flowsql_planner.logical.expression_text import ExpressionPrinter

#: Longer texts end in a digest of the whole: what is built on them stays short however deep a query nests.
_MOST_CHARACTERS: Final = 240
_DEFAULT_DATABASE: Final = "default_catalog.default_database."


def short(text: str) -> str:
    """A text that stays one name of its own and is not too long."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    return f"{text[:160]}..#{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def texts(exprs: Iterable[Expr], columns: Sequence[str]) -> tuple[str, ...]:
    """Expressions over columns."""
    printer = ExpressionPrinter(columns)
    return tuple(short(printer.print(expr)) for expr in exprs)


def conditions(condition: Expr | None, columns: Sequence[str]) -> tuple[str, ...]:
    """The conjuncts of a condition over columns."""
    return texts(conjuncts(condition), columns)


def united(*found: Iterable[str]) -> tuple[str, ...]:
    """Conditions of several places: sorted, each once."""
    return tuple(sorted({one for some in found for one in some}))


def placed(place: str, asked: Iterable[str]) -> tuple[str, ...]:
    """Where conditions hold, as one more condition: for operators on whose two sides a condition means two things.

    None where nothing is asked.
    """
    found = sorted(set(asked))
    return (short(f"{PLACED}{place}: {' AND '.join(found)}"),) if found else ()


def table_text(name: str) -> str:
    """A table's name as part of a column's."""
    return name.removeprefix(_DEFAULT_DATABASE)


def call_text(call: AggregateCall, columns: Sequence[str]) -> str:
    """An aggregate call without its alias."""
    args = ", ".join(columns[arg.index] for arg in call.args) or "*"
    distinct = "DISTINCT " if call.distinct else ""
    order = "".join(f" {columns[index]}{' DESC' if down else ''}" for index, down in call.order_by)
    options = "" if aggregated_with(call) else "".join(f" {key}={value}" for key, value in call.options)
    where = "" if call.filter_index is None else f" FILTER {columns[call.filter_index]}"
    return f"{aggregate_name(call)}({distinct}{args}{' ORDER BY' + order if order else ''}{options}){where}"


def aggregated(source: Lineage, grouping: Sequence[int], calls: Sequence[AggregateCall], per: str = "") -> Lineage:
    """Keys, then results, which depend on the keys and on the rows that are aggregated.

    Args:
        per: the window, where there is one.
    """
    keys = tuple(source.columns[index] for index in grouping)
    group = f" PER ({', '.join([*sorted(keys), per] if per else sorted(keys))})"
    results = tuple(short(call_text(call, source.columns) + group) for call in calls)
    return Lineage((*keys, *results), source.conditions)
