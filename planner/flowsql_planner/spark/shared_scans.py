"""Tables that several INSERTs of a statement set read through FlowSQL's readers: read once, for all of them.

Spark has no plan with several answers. What is read once it keeps until the statement is through: its tasks then take
from there what each answer wants, and apply the filters that readers would have applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from flowsql_connectors import registry
from flowsql_planner.logical.nodes import Rel, Scan, Sink, inputs
from flowsql_planner.logical.rewrite import select, walk, with_inputs
from flowsql_planner.spark.own_reading import own_reading

#: Answers that read a table for it to be shared. Spark takes about as long to keep rows of a csv file as to read them
#: three times (docs/spark.md).
FEWEST: Final = 5


def share_scans(roots: Sequence[Sink]) -> tuple[tuple[Sink, ...], frozenset[Scan]]:
    """The plans over scans that they share, and these scans.

    A shared scan has all columns that somebody reads. Scans of few plans stay as they are: Spark reads them as it goes
    along.
    """
    scans: dict[object, list[Scan]] = {}
    readers: dict[object, set[int]] = {}
    for place, root in enumerate(roots):
        for node in walk(root):
            if isinstance(node, Scan) and _may_be_shared(node):
                scans.setdefault(_key(node), []).append(node)
                readers.setdefault(_key(node), set()).add(place)
    wide = {key: _wide(found) for key, found in scans.items() if len(readers[key]) >= FEWEST}
    made = []
    for root in roots:
        changed = _over_shared(root, wide)
        assert isinstance(changed, Sink)
        made.append(changed)
    return tuple(made), frozenset(wide.values())


def _may_be_shared(scan: Scan) -> bool:
    if scan.limit is not None or own_reading(scan) is not None:
        return False
    files = registry.plain_files(scan.table)
    # Of partitions each reads its own; other sources may apply filters that nobody applies above them.
    return not scan.filters or (files is not None and not files.partition_keys)


def _key(scan: Scan) -> object:
    return scan.table, scan.metadata, scan.hints


def _wide(scans: Sequence[Scan]) -> Scan:
    first = scans[0]
    columns = tuple(sorted({index for scan in scans for index in scan.projection}))
    schema = tuple(first.table.columns[index] for index in columns)
    return replace(
        first, projection=columns, schema=schema + first.schema[len(first.projection) :], filters=(), span=first.span
    )


def _over_shared(rel: Rel, wide: dict[object, Scan]) -> Rel:
    if isinstance(rel, Scan):
        scan = wide.get(_key(rel)) if _may_be_shared(rel) else None
        if scan is None:
            return rel
        own = tuple(scan.projection.index(index) for index in rel.projection)
        metadata = tuple(len(scan.projection) + place for place in range(len(rel.metadata)))
        return select(scan, own + metadata)
    return with_inputs(rel, tuple(_over_shared(child, wide) for child in inputs(rel)))
