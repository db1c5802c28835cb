"""An upsert stream as a full changelog: the last row of each key is kept, so that its changes can be told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from flowsql.common.row import Row
from flowsql_core.errors import BindError
from flowsql_core.row import RowKind
from flowsql_core.stream.functions import KeyedProcessFunction, RuntimeContext
from flowsql_core.stream.state import ValueStateDescriptor

if TYPE_CHECKING:
    from flowsql.datastream.data_stream import DataStream


class LastRowOfKey(KeyedProcessFunction):
    """Tells inserts, updates with the row before them, and deletes with the whole row.

    Source: Flink, ``DeduplicateFunctionHelper.processLastRowOnChangelog``.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Find the row of the key."""
        self._last = runtime_context.get_state(ValueStateDescriptor("last"))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        """The changes that a row makes; a row that changes nothing makes none."""
        last: Row | None = self._last.value()
        if value.get_row_kind() not in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            if last is not None:
                self._last.clear()
                yield _as(last, RowKind.DELETE)
            return
        now = _as(value, RowKind.INSERT)
        if now == last:
            return
        self._last.update(now)
        if last is None:
            yield now
        else:
            yield _as(last, RowKind.UPDATE_BEFORE)
            yield _as(now, RowKind.UPDATE_AFTER)


def _as(row: Row, kind: RowKind) -> Row:
    made = row.copy()
    made.set_row_kind(kind)
    return made


def normalized(stream: DataStream, names: Sequence[str], key: Sequence[str]) -> DataStream:
    """The stream behind :class:`LastRowOfKey`.

    Args:
        stream: of rows.
        names: of the rows' fields.
        key: fields of the primary key.

    Raises:
        BindError: there is no key, or it is no field.
    """
    if not key:
        raise BindError(
            "upsert-without-key",
            "The stream is a changelog that contains 'UPDATE_AFTER' but no 'UPDATE_BEFORE'. This requires defining a "
            "primary key constraint on the table.",
            hint="Schema.new_builder().primary_key(...)",
        )
    unknown = [name for name in key if name not in names]
    if unknown:
        raise BindError(
            "key-not-found", f"The primary key has no field '{unknown[0]}': the stream has {', '.join(names)}."
        )
    places = [names.index(name) for name in key]

    def key_of(row: Any) -> tuple[Any, ...]:
        return tuple([row[place] for place in places])

    return stream.key_by(key_of).process(LastRowOfKey(), stream.get_type()).name("ChangelogNormalize")
