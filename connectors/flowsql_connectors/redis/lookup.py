"""Lookups: all keys of a request in one round trip."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_connectors.options import OptionValues
from flowsql_connectors.redis.client import connect, told
from flowsql_connectors.redis.content import Content
from flowsql_connectors.redis.options import LOOKUP_RETRIES, Structure
from flowsql_connectors.spi.lookup import FoundRows, LookupContext, TableLookup
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import ScanSpec

#: Keys of one command, or commands of one round trip.
_AT_ONCE: Final = 5_000


class RedisLookup(TableLookup):
    """Asks the server for the keys of each batch.

    Args:
        scan: whose output is wanted. ``context.keys``: places in it that are given.

    Raises:
        BindError: a column of the key is not given.
    """

    fewest_keys: int = 1024

    def __init__(self, scan: ScanSpec, content: Content, values: OptionValues, context: LookupContext) -> None:
        self._content = content
        self._values = values
        self._context = context
        self._places = scan.projection
        self._given = {scan.projection[key]: at for at, key in enumerate(context.keys)}
        missing = [place for place in content.template.columns if place not in self._given]
        if missing:
            names = ", ".join(scan.table.columns[place].name for place in content.template.columns)
            raise BindError(
                "lookup-key",
                f"Rows of {scan.table.name} are found by its key ({names}), and the join does not compare "
                f"'{scan.table.columns[missing[0]].name}'.",
            )
        self._closed = threading.Event()
        self._client = connect(values)

    def find(self, keys: Sequence[Any]) -> FoundRows:
        """The rows of each key."""
        retries = self._values.get(LOOKUP_RETRIES)
        for attempt in range(retries + 1):
            try:
                with told(self._values):
                    return self._find(keys)
            except ConnectorError as error:
                if not error.retryable or attempt == retries or self._closed.wait(attempt + 1):
                    raise
        raise AssertionError("the last attempt answers or raises")

    def _find(self, keys: Sequence[Any]) -> FoundRows:
        content = self._content
        given = {place: keys[at] for place, at in self._given.items()}
        names = content.template.keys(given, len(keys[0]))
        asked = [place for place in self._places if place not in content.template.columns]
        positions, texts = read_values(self._client, content, names, asked)
        of_texts, found = content.rows(texts, asked, self._context.configuration, "A value")
        if of_texts is not None:
            positions = positions[of_texts]
        same = np.ones(len(positions), np.bool_)
        rows = pa.array(positions)
        for place, column in found.items():
            if place in given:
                same &= np.asarray(pc.fill_null(pc.equal(column, given[place].take(rows)), False))
        columns = [found[place] if place in found else given[place].take(rows) for place in self._places]
        if not same.all():
            columns = [column.filter(pa.array(same)) for column in columns]
            positions = positions[same]
        return FoundRows(positions.astype(np.int32), columns)

    def close(self) -> None:
        """End the connections."""
        self._closed.set()
        self._client.close()


def read_values(client: Any, content: Content, names: Any, asked: Sequence[int]) -> tuple[Any, list[Any]]:
    """What stands behind keys.

    Args:
        names: a binary array of keys.
        asked: places of the columns that are wanted of hashes.

    Returns:
        Which key each value is of, int64, and binary arrays: of the values, or of each asked field.
    """
    positions, parts = [], []
    for start in range(0, len(names), _AT_ONCE):
        found, texts = _read(client, content, names.slice(start, _AT_ONCE).to_pylist(), asked)
        positions.append(found + start)
        parts.append(texts)
    width = len(asked) if content.structure is Structure.HASH else 1
    columns = [
        pa.concat_arrays([part[at] for part in parts]) if parts else pa.array([], pa.binary()) for at in range(width)
    ]
    return np.concatenate(positions) if positions else np.empty(0, np.int64), columns


def _read(client: Any, content: Content, names: list[bytes], asked: Sequence[int]) -> tuple[Any, list[Any]]:
    if content.structure is Structure.STRING:
        texts = pa.array(client.mget(names), pa.binary())
        return np.flatnonzero(np.asarray(texts.is_valid())), [texts.drop_null()]
    pipeline = client.pipeline(transaction=False)
    if content.structure is Structure.LIST:
        for name in names:
            pipeline.lrange(name, 0, -1)
        lists = pa.array(pipeline.execute(), pa.list_(pa.binary()))
        return np.asarray(pc.list_parent_indices(lists)), [lists.flatten()]
    fields = [content.table.columns[place].name.encode() for place in asked]
    for name in names:
        pipeline.exists(name)
        if fields:
            pipeline.hmget(name, fields)
    answers = pipeline.execute()
    step = 2 if fields else 1
    there = np.flatnonzero(answers[::step])
    rows = answers[1::2] if fields else []
    return there, [pa.array([rows[at][place] for at in there], pa.binary()) for place in range(len(fields))]
