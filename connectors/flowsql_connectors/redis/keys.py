"""Keys of a table: a text with columns in braces, made of rows and taken apart again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from flowsql_connectors.options import OptionValues
from flowsql_connectors.redis.options import KEY
from flowsql_connectors.redis.texts import is_nested, texts_of, values_of
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ExecutionError, did_you_mean
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema

_BRACES: Final = re.compile(r"\{([^{}]*)\}")


@record
class KeyTemplate:
    """``parts``: texts, and places of columns, one behind another. ``schema``: the table's columns."""

    parts: tuple[str | int, ...]
    schema: Schema

    @property
    def columns(self) -> tuple[int, ...]:
        """Places of the columns in the key."""
        return tuple(part for part in self.parts if isinstance(part, int))

    def keys(self, columns: dict[int, Any], rows: int) -> Any:
        """A binary array of keys.

        Args:
            columns: arrays by place.

        Raises:
            ExecutionError: a column is NULL.
        """
        pieces: list[Any] = []
        for part in self.parts:
            if isinstance(part, str):
                pieces.append(part.encode())
                continue
            column = self.schema[part]
            if columns[part].null_count:
                raise ExecutionError("null-key", f"Column '{column.name}' is NULL in a row, and its key needs it.")
            pieces.append(texts_of(columns[part], column.type))
        if all(isinstance(piece, bytes) for piece in pieces):
            return pa.repeat(pa.scalar(b"".join(pieces), pa.binary()), rows)
        return pieces[0] if len(pieces) == 1 else pc.binary_join_element_wise(*pieces, b"")

    @property
    def pattern(self) -> str:
        """What the server's SCAN matches."""
        return "".join(re.sub(r"([\\*?\[\]])", r"\\\1", part) if isinstance(part, str) else "*" for part in self.parts)

    def taken_apart(self, keys: Any) -> tuple[Any, dict[int, Any]]:
        """Which keys are some of the table, bool (n,), and the columns that those hold, by place."""
        groups = "".join(re.escape(part) if isinstance(part, str) else f"(?P<c{part}>.*)" for part in self.parts)
        lazy = groups.replace(".*)", ".*?)", max(0, len(self.columns) - 1))
        if not self.columns:
            return pc.equal(keys, pa.scalar(groups.encode(), pa.binary())), {}
        found = pc.extract_regex(keys.cast(pa.string()), f"^(?s:{lazy})$")
        fits = found.is_valid()
        found = found.filter(fits)
        texts = {place: pc.struct_field(found, f"c{place}").cast(pa.binary()) for place in self.columns}
        return fits, {place: values_of(text, self.schema[place], "A key") for place, text in texts.items()}


def key_template(table: TableSpec, values: OptionValues) -> KeyTemplate:
    """The key of a table.

    Raises:
        BindError: there is none, or it names what is no column, or other columns than those of the primary key.
    """
    names = [column.name for column in table.columns]
    text = values.get(KEY)
    if text is None:
        if not table.primary_key:
            raise BindError(
                "missing-option",
                f"Table {table.name} has neither '{KEY.key}' nor a primary key, so its rows have no keys.",
                hint=f"'{KEY.key}' = 'name:{{{names[0]}}}', or PRIMARY KEY ({names[0]}) NOT ENFORCED",
            )
        text = ":".join(f"{{{name}}}" for name in table.primary_key)
    parts: list[str | int] = []
    for at, piece in enumerate(_BRACES.split(text)):
        if at % 2 == 0:
            if piece:
                parts.append(piece)
            continue
        if piece not in names:
            raise BindError(
                "column-not-found",
                f"'{KEY.key}' = '{text}': table {table.name} has no column '{piece}'.",
                hint=did_you_mean(piece, names),
            )
        parts.append(names.index(piece))
    made = KeyTemplate(tuple(parts), table.columns)
    _check(table, made, text)
    return made


def _check(table: TableSpec, template: KeyTemplate, text: str) -> None:
    named = [table.columns[place].name for place in template.columns]
    if table.primary_key and sorted(named) != sorted(table.primary_key):
        raise BindError(
            "invalid-option-value",
            f"'{KEY.key}' = '{text}' holds the columns ({', '.join(named)}), and the primary key of {table.name} is "
            f"({', '.join(table.primary_key)}): each row has one key only where they are the same.",
        )
    if len(set(named)) < len(named):
        raise BindError("invalid-option-value", f"'{KEY.key}' = '{text}' names a column twice.")
    for place in template.columns:
        if is_nested(table.columns[place].type):
            column = table.columns[place]
            raise BindError(
                "invalid-option-value", f"'{KEY.key}': column '{column.name}' is {column.type}, which has no key."
            )


def value_places(table: TableSpec, template: KeyTemplate) -> Sequence[int]:
    """Places of the columns that are not in the key."""
    return [place for place in range(len(table.columns)) if place not in template.columns]
