"""Lines of events to changes of rows: the events are read as json rows are, then unfolded column by column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from flowsql_connectors.formats.change.events import Bools, Events, flattened, unfold
from flowsql_connectors.formats.change.lines import codes, names_in_lines, without_lines
from flowsql_connectors.formats.change.styles import REPLICA_IDENTITY, Action
from flowsql_connectors.formats.format import Columns, DecodeContext
from flowsql_connectors.formats.json_decode import BadLineError, JsonLines, Lines
from flowsql_connectors.formats.json_values import double_text, json_text, stripped_text
from flowsql_core.types.logical import (
    INT,
    STRING,
    ArrayType,
    Column,
    DecimalType,
    Field,
    LogicalType,
    MapType,
    RowType,
    Schema,
)

if TYPE_CHECKING:
    from flowsql_connectors.formats.change.factory import ChangeFormat

#: The field that holds the event where its schema stands beside it.
_PAYLOAD: Final = "payload"
#: In place of rows without columns; no object has such a field.
_NO_FIELD: Final = "\x00"


class ChangeDecoder(JsonLines):
    """Decodes ranges of files of one change format for one scan."""

    def __init__(self, format_: ChangeFormat, context: DecodeContext) -> None:
        self._style = format_.style
        self._patterns = format_.patterns
        self._actions = {word: int(action) for word, action in self._style.actions.items()}
        self._names = [context.columns[index].name for index in context.projection]
        self._metadata = [self._style.metadata[key] for key in context.metadata]
        self._with_schema = format_.schema_include
        # Values in texts are Canal's rule, not an exception.
        wanted = self._envelope(context)
        # As with Jackson's trees, which hold doubles unless decimals are asked for.
        decimals = any(_has_decimal(column.type) for column in wanted)
        super().__init__(
            format_.json,
            wanted,
            context.tells_bad_rows,
            stripped_text if decimals else double_text,
            reshaped=self._style.listed,
            lose=context.lose,
            tells_lines=context.tells_lines,
        )

    def _envelope(self, context: DecodeContext) -> Schema:
        """The fields of a line's object that are read."""
        style = self._style
        fields = [context.columns[index] for index in context.projection] or [Column(_NO_FIELD, INT)]
        row: LogicalType = RowType(fields=tuple(Field(column.name, column.type.as_nullable()) for column in fields))
        rows = ArrayType(element=row) if style.listed else row
        event: dict[str, LogicalType] = {style.before: rows, style.after: rows, style.op: STRING}
        event.update((field, STRING) for field, _ in self._patterns)
        event.update((field.field, field.read) for field in self._metadata if not field.outside)
        if not self._with_schema:
            event.update((field.field, field.read) for field in self._metadata if field.outside)
            return tuple(Column(name, type_) for name, type_ in event.items())
        payload = RowType(fields=tuple(Field(name, type_) for name, type_ in event.items()))
        outside = {field.field: field.read for field in self._metadata if field.outside}
        return (Column(_PAYLOAD, payload), *(Column(name, type_) for name, type_ in outside.items()))

    def relevant(self, data: bytes) -> bytes:
        """Without the lines of other tables."""
        for field, pattern in self._patterns:
            data = without_lines(data, field, lambda text, pattern=pattern: pattern.fullmatch(text) is not None)  # type: ignore[misc]
        return data

    def documents(self, document: Any) -> list[dict[str, Any]]:
        """One event, unless it is another table's."""
        if isinstance(document, list) and len(document) == 1 and not self._style.partial:
            document = document[0]
        if not isinstance(document, dict):
            if self._drops_lines:
                self.lose_here()
                return []
            raise ValueError("The line holds no object")
        for field, pattern in self._patterns:
            if field not in document:
                if self._drops_lines:
                    self.lose_here()
                    return []
                raise ValueError(f'The field "{field}" is missing')
            if pattern.fullmatch(json_text(document[field])) is None:
                return []
        return [document]

    def tell(self, document: dict[str, Any]) -> tuple[bool, ...]:
        """Which columns stand somewhere in the row before, where such rows hold changed fields only."""
        if not self._style.partial:
            return ()
        found = _names_of(document.get(self._style.before))
        return tuple(name in found for name in self._names)

    def finished(self, columns: Columns, lines: Lines) -> Columns | None:
        """The changes that the events tell."""
        fields = self._fields(columns)
        if lines.numbers is None and any(fields[field].null_count for field, _ in self._patterns):
            return None
        style = self._style
        action = codes(fields[style.op], self._actions, Action.BAD)
        if style.listed:
            events = flattened(action, fields[style.before], fields[style.after])
        else:
            events = Events(action, fields[style.before], fields[style.after], np.arange(len(action)))
        lacking = events.lacking()
        bad = action == Action.BAD
        if style.listed:
            # Without a list of new rows there is nothing to tell that one is lacking.
            bad |= np.asarray(fields[style.after].is_null()) & (action != Action.SKIP)
        bad[events.line[lacking]] = True
        metadata, odd = self._told_beside(fields)
        odd &= action != Action.SKIP
        if not self._drops_lines:
            if bad.any():
                raise self._bad(int(np.argmax(bad)), lines, fields, action)
            if odd.any():
                raise lines.bad(int(np.argmax(odd)), "A time among the metadata cannot be read")
        if lacking.any():
            events = events.select(events.up_to_the_first(lacking))
        if odd.any():
            events = events.select(~odd[events.line])
        taken = None
        if style.partial:
            marks = self._taken(events, lines, columns.num_rows)
            if marks is None:
                return None
            taken = marks
        wrong = bad | odd
        if wrong.any():
            self.losses.rows(int(wrong.sum()), lines.bad(int(np.argmax(wrong)), "").line)
        found = unfold(events, metadata, taken)
        numbers = lines.of_rows()[found.lines] if self.tells_lines else None
        return Columns(found.arrays if self._names else found.arrays[1:], found.num_rows, found.kinds, numbers)

    def complaint(self, bad: BadLineError) -> str:
        """Flink's words, and the reason."""
        shown = bad.raw[:200].decode("utf-8", "replace").rstrip("\r")
        return f"Corrupt {self._style.name} JSON message '{shown}'.\n{bad.reason}"

    def _fields(self, columns: Columns) -> dict[str, Any]:
        """The fields of the events; NULL where there is no payload."""
        fields = {column.name: array for column, array in zip(self._wanted, columns.arrays, strict=True)}
        if not self._with_schema:
            return fields
        payload = fields.pop(_PAYLOAD)
        children = payload.flatten()
        names = [payload.type.field(index).name for index in range(payload.type.num_fields)]
        return {**fields, **dict(zip(names, children, strict=True))}

    def _told_beside(self, fields: dict[str, Any]) -> tuple[list[Any], Bools]:
        """The metadata columns by line, and lines where one cannot be read."""
        columns = []
        odd = np.zeros(len(fields[self._style.op]), np.bool_)
        for field in self._metadata:
            made = field.made(fields[field.field])
            if field.parsed is not None:
                texts, made = made, field.parsed(made)
                odd |= np.asarray(texts.is_valid()) & np.asarray(made.is_null())
            columns.append(made)
        return columns, odd

    def _taken(self, events: Events, lines: Lines, rows: int) -> Bools | None:
        """Of rows before an update, the fields that are those of the new row; None: read line by line."""
        updates = events.action == Action.UPDATE
        marks = np.zeros((len(updates), max(len(self._names), 1)), np.bool_)
        if not self._names or not updates.any():
            return marks
        nulls = np.stack(
            [np.asarray(events.before.field(index).is_null()) for index in range(len(self._names))], axis=1
        )
        nulls &= updates[:, None]
        if not nulls.any():
            return marks
        found: npt.NDArray[np.bool_] | None
        if lines.told is not None:
            found = np.array(lines.told, np.bool_).reshape(rows, len(self._names))
        else:
            found = names_in_lines(lines.data, rows, self._style.before, self._names)
        return None if found is None else nulls & ~found[events.line]

    def _bad(self, row: int, lines: Lines, fields: dict[str, Any], action: npt.NDArray[np.int8]) -> BadLineError:
        style = self._style
        word = fields[style.op][row].as_py()
        if action[row] == Action.BAD:
            return lines.bad(row, style.unknown(word))
        if action[row] in (Action.UPDATE, Action.DELETE) and not fields[style.before][row].is_valid:
            if not style.partial:
                op = "UPDATE" if action[row] == Action.UPDATE else "DELETE"
                return lines.bad(row, REPLICA_IDENTITY.format(field=style.before, op=op, name=style.name))
            return lines.bad(row, f'The field "{style.before}" is missing or NULL, although "{style.op}" is "{word}"')
        if style.listed and fields[style.after][row].is_valid:
            return lines.bad(row, f'A row in "{style.after}" or "{style.before}" is missing or NULL')
        return lines.bad(row, f'The field "{style.after}" is missing or NULL, although "{style.op}" is "{word}"')


def _names_of(value: Any) -> set[str]:
    """The names of all members inside of a value, however deep."""
    if isinstance(value, dict):
        return set(value).union(*map(_names_of, value.values()))
    if isinstance(value, list):
        return set().union(*map(_names_of, value))
    return set()


def _has_decimal(type_: LogicalType) -> bool:
    match type_:
        case DecimalType():
            return True
        case ArrayType(element=element):
            return _has_decimal(element)
        case MapType(key=key, value=value):
            return _has_decimal(key) or _has_decimal(value)
        case RowType(fields=fields):
            return any(_has_decimal(field.type) for field in fields)
    return False
