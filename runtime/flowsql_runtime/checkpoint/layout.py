"""The layout of an operator's keyed state: named, typed columns, by which a changed query finds its state again."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flowsql_core.clock import SystemClock
from flowsql_core.graph.job import JobGraph, OperatorNode
from flowsql_core.graph.specs import ExtensionSpec
from flowsql_core.types.logical import without_attribute
from flowsql_runtime.metrics.registry import OperatorMetrics
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.registry import make_operator, operator_class
from flowsql_runtime.state.backend import OperatorStateBackend
from flowsql_runtime.state.hashmap import KEY_GROUP, HashMapBackend
from flowsql_runtime.state.names import StateNames, TableNames
from flowsql_runtime.time.timers import TimerService


@dataclass(frozen=True, slots=True)
class StateColumn:
    """``stored``: its name in the table. ``needs``: stored name of the count that says whether it holds anything."""

    stored: str
    meaning: str
    type: str
    needs: str = ""


@dataclass(frozen=True, slots=True)
class StateTable:
    """The table of one store, without key columns. ``grows``: see ``TableNames``."""

    meaning: str
    columns: tuple[StateColumn, ...]
    grows: bool = False


@dataclass(frozen=True, slots=True)
class OperatorLayout:
    """All keyed state of one operator.

    ``keys``: meaning and type. ``conditions``: which rows each input brings. ``facts``, ``retracts`` and the three
    behind ``tables`` are those of ``StateNames``. ``types``: by input the SQL type of each column, by its meaning.
    These four are None in older snapshots.
    """

    keys: tuple[tuple[str, str], ...]
    conditions: tuple[tuple[str, ...], ...]
    facts: dict[str, str] = field(default_factory=dict)
    retracts: bool = False
    tables: dict[str, StateTable] = field(default_factory=dict)
    made_with: dict[str, str] | None = None
    answered_with: dict[str, str] | None = None
    reaches: dict[str, int] | None = None
    types: tuple[dict[str, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class NewState:
    """The state of an operator that is about to run: its layout, and an empty table a store."""

    layout: OperatorLayout
    tables: Mapping[str, Any]


def new_states(graph: JobGraph) -> dict[str, NewState]:
    """By uid, of the operators whose state has names."""
    found = {}
    for vertex in graph.vertices:
        for node in vertex.operators:
            state = _new_state(node, graph.resources)
            if state is not None:
                found[node.uid] = state
    return found


def rows_digests(node: OperatorNode) -> tuple[str, ...]:
    """Per input, what tells rows on their way to this operator from those of another query; "" where nobody knows."""
    return tuple(hashlib.sha256("\n".join(one.columns).encode()).hexdigest()[:16] for one in node.lineage)


def types_digests(node: OperatorNode) -> tuple[str, ...]:
    """Per input, what tells the types of its columns from others."""
    return tuple(hashlib.sha256("\n".join(one.values()).encode()).hexdigest()[:16] for one in types_of(node))


def _new_state(node: OperatorNode, resources: Mapping[str, Any]) -> NewState | None:
    """Ask an operator that has no rows: so a layout is never another one than that of the stores."""
    if not node.lineage or isinstance(node.spec, ExtensionSpec) or not operator_class(node.spec).stateful:
        return None
    operator = make_operator(node.spec, resources)
    if type(operator).state_names is Operator.state_names:
        # To open it might run a user's function.
        return None
    state = HashMapBackend(1)
    ctx = _context(node, state, resources)
    operator.ctx = ctx
    operator.open(ctx)
    names = operator.state_names(node.lineage)
    if names is None:
        return None
    tables = state.snapshot()
    conditions = tuple(one.conditions for one in node.lineage)
    described = {name: _table(table, names, names.tables[name]) for name, table in tables.items()}
    keys = tuple(zip(names.keys, _key_types(tables, len(names.keys)), strict=True))
    made_with, answered_with = dict(names.made_with), dict(names.answered_with)
    if node.predicates:
        (made_with if names.predicates_in_state else answered_with)["condition"] = " AND ".join(sorted(node.predicates))
    layout = OperatorLayout(
        keys,
        conditions,
        dict(names.facts),
        names.retracts,
        described,
        made_with,
        answered_with,
        dict(names.reaches),
        types_of(node),
    )
    return NewState(layout, tables)


def types_of(node: OperatorNode) -> tuple[dict[str, str], ...]:
    """By input the SQL type of each column, by its meaning."""
    return tuple(
        {text: str(without_attribute(column.type)) for text, column in zip(lineage.columns, schema, strict=True)}
        for lineage, schema in zip(node.lineage, node.arriving, strict=True)
    )


def _key_types(tables: Mapping[str, Any], count: int) -> Iterator[str]:
    schema = next(iter(tables.values())).schema
    return (str(schema.field(f"k{place}").type) for place in range(count))


def _table(table: Any, names: StateNames, meant: TableNames) -> StateTable:
    keys = {KEY_GROUP, *(f"k{place}" for place in range(len(names.keys)))}
    columns = tuple(
        StateColumn(one.name, meant.columns.get(one.name, one.name), str(one.type), meant.counts.get(one.name, ""))
        for one in table.schema
        if one.name not in keys
    )
    return StateTable(meant.meaning, columns, meant.grows)


def _context(node: OperatorNode, state: HashMapBackend, resources: Mapping[str, Any]) -> OperatorContext:
    return OperatorContext(
        name=node.name,
        uid=node.uid,
        subtask=0,
        parallelism=1,
        max_parallelism=1,
        clock=SystemClock(),
        rng=random.Random(0),
        state=state,
        operator_state=OperatorStateBackend(),
        timers=TimerService(),
        metrics=OperatorMetrics(node.name, 0),
        parameters={},
        resources=resources,
        submit=lambda mail: mail(),
        memory_bytes=1 << 20,
        spill_directory="",
    )


def layout_of_json(found: Mapping[str, Any] | None) -> OperatorLayout | None:
    """The inverse of ``dataclasses.asdict`` and JSON."""
    if found is None:
        return None
    tables = {
        name: StateTable(table["meaning"], tuple(StateColumn(**one) for one in table["columns"]), table["grows"])
        for name, table in found["tables"].items()
    }
    return OperatorLayout(
        tuple((meaning, type_) for meaning, type_ in found["keys"]),
        tuple(_texts(one) for one in found["conditions"]),
        found["facts"],
        found["retracts"],
        tables,
        found.get("made_with"),
        found.get("answered_with"),
        found.get("reaches"),
        None if found.get("types") is None else tuple(found["types"]),
    )


def _texts(found: Sequence[str]) -> tuple[str, ...]:
    return tuple(found)
