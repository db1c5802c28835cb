"""The ``debezium-avro-confluent`` format: Debezium's events in Avro, with a schema registry."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from flowsql_connectors.formats.avro.confluent.client import RegistryAddress, SchemaRegistry
from flowsql_connectors.formats.avro.confluent.declared import check_declared
from flowsql_connectors.formats.avro.confluent.factory import subject_of
from flowsql_connectors.formats.avro.confluent.messages import RegistryDecoder, RegistryEncoder
from flowsql_connectors.formats.avro.confluent.options import RegistryOptions
from flowsql_connectors.formats.avro.derived import derived_schema
from flowsql_connectors.formats.avro.files import row_of
from flowsql_connectors.formats.avro.resolved import ReaderRules, rules_of
from flowsql_connectors.formats.avro.schema import parse_schema
from flowsql_connectors.formats.change.events import Events, unfold
from flowsql_connectors.formats.change.lines import codes
from flowsql_connectors.formats.change.styles import DEBEZIUM, REPLICA_IDENTITY, Action
from flowsql_connectors.formats.columnar.binary_messages import BadMessageError, BinaryMessages, MessageRows
from flowsql_connectors.formats.format import (
    Columns,
    DecodeContext,
    EncodeContext,
    FileFormat,
    FormatFactory,
    MessageDecoder,
    MessageEncoder,
)
from flowsql_connectors.options import OptionSet, OptionValues
from flowsql_core.arrow import compute as pc
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.row import ALL_CHANGES, INSERT, UPDATE_AFTER, ChangelogMode
from flowsql_core.types.logical import STRING, Column, RowType, Schema

IDENTIFIER: Final = "debezium-avro-confluent"
_OPTIONS: Final = RegistryOptions(IDENTIFIER)
_MISMATCH: Final = (
    f"Schema provided for '{IDENTIFIER}' format must be a nullable record type with fields 'before', 'after', 'op' and "
    "schema of fields 'before' and 'after' must match the table schema"
)
_ACTIONS: Final = {word: int(action) for word, action in DEBEZIUM.actions.items()}


def _envelope(columns: Schema) -> Schema:
    """The fields of an event."""
    row = RowType(fields=row_of(columns).fields)
    return Column("before", row), Column("after", row), Column("op", STRING)


@record
class DebeziumAvroFormat(FileFormat):
    """Debezium's events with a schema registry."""

    address: RegistryAddress
    subject: str | None
    schema: str | None

    identifier = IDENTIFIER

    @property
    def changelog_mode(self) -> ChangelogMode:
        """All four kinds."""
        return ALL_CHANGES

    def message_decoder(self, context: DecodeContext) -> MessageDecoder:
        """A decoder of events."""
        # The rows before and after must be there, though nobody wants a column of them.
        wanted = tuple(context.columns[index] for index in context.projection) or context.columns[:1]
        rules = ReaderRules({}, {}) if self.schema is None else rules_of(parse_schema(self.schema))
        rows = RegistryDecoder(SchemaRegistry(self.address), row_of(_envelope(wanted)), rules)
        return _EventDecoder(rows, len(context.projection))

    def message_encoder(self, columns: Schema, context: EncodeContext | None = None) -> MessageEncoder:
        """An encoder of events.

        Raises:
            BindError: nobody names a subject; the schema has a type that is not written (fixed).
        """
        name = subject_of(_OPTIONS, self.subject, None if context is None else context.subject)
        envelope = _envelope(columns)
        made = orjson.dumps(derived_schema(envelope, legacy=True, nullable=True))
        schema = made if self.schema is None else self.schema.encode()
        return _EventEncoder(RegistryEncoder(SchemaRegistry(self.address), name, schema, row_of(envelope)), columns)


class _EventDecoder(BinaryMessages):
    """``wanted``: the first so many columns of the rows are."""

    def __init__(self, events: RegistryDecoder, wanted: int) -> None:
        self._events = events
        self._wanted = wanted

    def rows(self, messages: Any) -> MessageRows:
        """The changes that the events tell; a message without bytes, which follows a deletion, tells none."""
        empty = pc.equal(pc.binary_length(messages), 0)
        if pc.any(empty).as_py():
            messages = pc.if_else(empty, pa.scalar(None, messages.type), messages)
        found = self._events.rows(messages)
        before, after, op = found.columns.arrays
        action = codes(op, _ACTIONS, Action.BAD)
        numbers = np.arange(len(action)) if found.message is None else found.message
        events = Events(action, before, after, np.arange(len(action)))
        lacking = events.lacking()
        bad = lacking | (action == Action.BAD)
        if bad.any():
            row = int(np.argmax(bad))
            raise BadMessageError(
                int(numbers[row]), "bad-avro-record", _complaint(int(action[row]), op[row].as_py(), before[row])
            )
        rows = unfold(events, [pa.array(numbers)], None)
        arrays, message = rows.arrays[: self._wanted], np.asarray(rows.arrays[-1])
        return MessageRows(Columns(arrays, rows.num_rows, rows.kinds), message)


def _complaint(action: int, word: Any, before: Any) -> str:
    if action == Action.BAD:
        return f"Can't deserialize Debezium Avro message: {DEBEZIUM.unknown(word)}"
    if action in (Action.UPDATE, Action.DELETE) and not before.is_valid:
        op = "UPDATE" if action == Action.UPDATE else "DELETE"
        return REPLICA_IDENTITY.format(field="before", op=op, name=DEBEZIUM.name)
    return f'Can\'t deserialize Debezium Avro message: The field "after" is NULL, although "op" is "{word}"'


class _EventEncoder(MessageEncoder):
    def __init__(self, events: RegistryEncoder, columns: Schema) -> None:
        self._events = events
        self._names = [column.name for column in columns]

    def encode(self, columns: tuple[Any, ...], num_rows: int, kinds: npt.NDArray[np.uint8] | None = None) -> Any:
        """An event a change: an update is a row that goes and one that comes."""
        comes = np.ones(num_rows, np.bool_) if kinds is None else (kinds == INSERT) | (kinds == UPDATE_AFTER)
        before = pa.StructArray.from_arrays(columns, self._names, mask=pa.array(comes))
        after = pa.StructArray.from_arrays(columns, self._names, mask=pa.array(~comes))
        op = pa.array(DEBEZIUM.written).take(pa.array(np.where(comes, 0, 1)))
        return self._events.encode((before, after, op), num_rows, None)


class DebeziumAvroFormatFactory(FormatFactory):
    """Makes debezium-avro-confluent formats."""

    def options(self) -> OptionSet:
        """The ``debezium-avro-confluent.*`` options."""
        return _OPTIONS.all()

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format.

        Raises:
            ConnectorError: the explicit schema is none.
            BindError: it is not the one of the columns' events, or Avro has no type for one of them.
        """
        schema = values.get(_OPTIONS.schema)
        envelope = _envelope(table.columns)
        if schema is not None:
            check_declared(schema, envelope, _MISMATCH, nullable=True)
        derived_schema(envelope, legacy=True)
        return DebeziumAvroFormat(_OPTIONS.address(values), values.get(_OPTIONS.subject), schema)
