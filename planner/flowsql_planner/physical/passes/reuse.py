"""Equal work done once: scans of one table share their columns, equal sub-plans become one object.

A plan is a tree until here; afterwards equal parts are the same object, also across the sinks of a statement set.
Source: Flink's ``ScanReuser`` and ``SubplanReuser``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_core.expr import remap_inputs
from flowsql_planner.optimize.determinism import is_deterministic
from flowsql_planner.physical.calc import select
from flowsql_planner.physical.nodes import Calc, Physical, TableSourceScan, walk

_ScanKey = tuple[object, ...]


def share_scans(roots: Sequence[Physical]) -> tuple[Physical, ...]:
    """Scans that differ only in their columns read the union of them, each consumer narrowing what it gets."""
    groups: dict[_ScanKey, list[TableSourceScan]] = {}
    for root in roots:
        for node in walk(root):
            if isinstance(node, TableSourceScan):
                groups.setdefault(_scan_key(node), []).append(node)
    wide: dict[_ScanKey, TableSourceScan] = {}
    for key, scans in groups.items():
        if len({scan.projection for scan in scans}) > 1:
            wide[key] = _union_scan(scans)
    if not wide:
        return tuple(roots)
    return tuple(_widened(root, wide) for root in roots)


def _scan_key(scan: TableSourceScan) -> _ScanKey:
    return (scan.table, scan.metadata, scan.filters, scan.limit)


def _union_scan(scans: list[TableSourceScan]) -> TableSourceScan:
    first = scans[0]
    columns = tuple(sorted({index for scan in scans for index in scan.projection}))
    schema = tuple(first.table.columns[index] for index in columns)
    metadata = first.schema[len(first.projection) :]
    return replace(first, projection=columns, schema=schema + metadata)


def _widened(node: Physical, wide: dict[_ScanKey, TableSourceScan]) -> Physical:
    if isinstance(node, TableSourceScan):
        scan = wide.get(_scan_key(node))
        if scan is None or scan.projection == node.projection:
            return node if scan is None else scan
        return select(scan, _places(node, scan))
    if isinstance(node, Calc) and isinstance(node.inputs[0], TableSourceScan):
        scan = wide.get(_scan_key(node.inputs[0]))
        if scan is not None and all(is_deterministic(expr) for expr in node.projections):
            places = _places(node.inputs[0], scan)
            return replace(
                node,
                inputs=(scan,),
                projections=tuple(remap_inputs(expr, lambda index: places[index]) for expr in node.projections),
                condition=None if node.condition is None else remap_inputs(node.condition, lambda index: places[index]),
            )
    return replace(node, inputs=tuple(_widened(child, wide) for child in node.inputs))


def _places(narrow: TableSourceScan, wide: TableSourceScan) -> tuple[int, ...]:
    own = tuple(wide.projection.index(index) for index in narrow.projection)
    return own + tuple(len(wide.projection) + i for i in range(len(narrow.metadata)))


def share_sub_plans(roots: Sequence[Physical]) -> tuple[Physical, ...]:
    """Equal sub-plans as one object. Plans that draw random numbers or make up rows are equal only by chance."""
    known: dict[Physical, Physical] = {}

    def shared(node: Physical) -> Physical:
        inputs = tuple(shared(child) for child in node.inputs)
        made = (
            replace(node, inputs=inputs) if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)) else node
        )
        if not made.repeatable():
            return made
        return known.setdefault(made, made)

    return tuple(shared(root) for root in roots)
