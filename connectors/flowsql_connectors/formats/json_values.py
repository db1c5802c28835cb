"""One JSON document to the values of a row, by the rules of Flink's converters (numbers keep their text)."""

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

from flowsql_compute.eval.json.document import too_deep
from flowsql_compute.eval.text.java_numbers import java_double
from flowsql_connectors.formats.jackson.tokens import MOST_DIGITS, JsonTokens, NumberText
from flowsql_connectors.formats.text_values import TextDialect, text_value
from flowsql_core.types.logical import (
    ArrayType,
    BigIntType,
    BooleanType,
    CharacterType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
)

#: The text that a STRING field makes of a number as it is written.
NumberToText = Callable[[str], str]


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"Unrecognized token '{text}'")


class _TwiceError(ValueError):
    """An object has two members of one name."""


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    if len(made) != len(members):
        raise _TwiceError
    return made


_DECODER: Final = json.JSONDecoder(
    parse_int=NumberText, parse_float=NumberText, parse_constant=_no_constant, strict=False
)
_UNIQUE_DECODER: Final = json.JSONDecoder(
    parse_int=NumberText, parse_float=NumberText, parse_constant=_no_constant, strict=False, object_pairs_hook=_unique
)
_BLANKS: Final = b" \t\r\n"
#: Half of a surrogate pair, and a number that may have more digits than Jackson takes.
_ODD: Final = re.compile(rb"\\u[dD][89a-fA-F]|[0-9.eE+-]{%d}" % MOST_DIGITS)


def plain_document(line: bytes) -> Any | None:
    """The first JSON value of a line that Python's own parser reads as Flink would.

    Returns:
        None where the line is another one, or ``null``: it is to be read token by token. So are names given twice.
    """
    if _ODD.search(line) is not None or too_deep(line.decode(errors="replace")):
        return None
    try:
        return _UNIQUE_DECODER.raw_decode(line.lstrip(_BLANKS).decode())[0]
    except (ValueError, RecursionError):
        return None


def parse_document(line: bytes) -> Any:
    """The first JSON value of a line (what follows it is not looked at, as in Flink); of equal names the last counts.

    Raises:
        ValueError: no JSON.
    """
    if _ODD.search(line) is None and not too_deep(line.decode(errors="replace")):
        try:
            return _DECODER.raw_decode(line.lstrip(_BLANKS).decode())[0]
        except (ValueError, RecursionError):
            pass
    tokens = JsonTokens(line)
    return None if tokens.advance() is None else tokens.tree()


class JsonConverter:
    """Converts parsed values; ``ignore`` makes NULL of whatever has no value of its type.

    ``strict``: numbers keep their fractions, and BOOLEAN takes no other words than true and false.
    ``number_text``: what a text makes of a number that is not inside of an object or array; by default what is written.
    """

    def __init__(
        self,
        dialect: TextDialect,
        ignore: bool,
        fail_on_missing: bool,
        number_text: NumberToText | None = None,
        strict: bool = False,
    ) -> None:
        self._dialect = dialect
        self._ignore = ignore
        self._fail_on_missing = fail_on_missing
        self._number_text = number_text
        self.strict = strict
        #: Values that became NULL, as they are none of their type; whoever reads it sets it back.
        self.nulled = 0

    def field(self, document: dict[str, Any], name: str, type_: LogicalType) -> Any:
        """A field of an object as the Python value that ``pa.array`` takes.

        Raises:
            ValueError: missing although it must not, or no value of the type; not with ``ignore``.
        """
        if name not in document:
            if self._fail_on_missing:
                raise ValueError(f"Could not find field with name '{name}'.")
            return None
        try:
            return self._value(document[name], type_)
        except ValueError as error:
            raise ValueError(f"Fail to deserialize at field: {name}. {error}") from error

    def _value(self, value: Any, type_: LogicalType) -> Any:
        if value is None:
            return None
        try:
            return self.scalar(value, type_)
        except ValueError:
            if self._ignore:
                self.nulled += 1
                return None
            raise

    def scalar(self, value: Any, type_: LogicalType) -> Any:
        """A value that is not ``null`` as :meth:`field` gives it.

        Raises:
            ValueError: no value of the type.
        """
        match type_:
            case CharacterType():
                return json_text(value, self._number_text)
            case BooleanType():
                if self.strict and not isinstance(value, bool) and json_text(value).lower() not in ("true", "false"):
                    raise ValueError(f"{json_text(value)} is neither true nor false")
                return value if isinstance(value, bool) else self._from_text(value, type_)
            case IntType() | BigIntType() if isinstance(value, NumberText) and not self.strict:
                return _truncated(value, type_)
            case IntegerType() | FloatType() | DoubleType():
                return self._from_text(value, type_)
            case DecimalType():
                return self._from_text(value, type_)
            case ArrayType(element=element):
                return [self._value(item, element) for item in _expect(value, list, type_)]
            case MapType(value=item_type):
                return self._pairs(value, type_, item_type)
            case MultisetType():
                return self._pairs(value, type_, IntType())
            case RowType(fields=fields):
                document = _expect(value, dict, type_)
                return {field.name: self.field(document, field.name, field.type) for field in fields}
        if isinstance(value, NumberText) or not isinstance(value, str):
            raise ValueError(f"{json_text(value)} is no text of type {type_}")
        return text_value(value, type_, self._dialect)

    def _pairs(self, value: Any, type_: LogicalType, item: LogicalType) -> list[tuple[Any, Any]]:
        document = _expect(value, dict, type_)
        # Loaded by formats that have maps alone.
        from flowsql_compute.eval.nested.map_order import text_order

        names = text_order(tuple(document))
        return [(name, self._value(document[name], item)) for name in names]

    def _from_text(self, value: Any, type_: LogicalType) -> Any:
        if not isinstance(value, str):
            raise ValueError(f"{json_text(value)} is no {type_}")
        return text_value(str(value), type_, self._dialect)


def _expect(value: Any, kind: type, type_: LogicalType) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{json_text(value)} is no {type_}")
    return value


def _truncated(number: NumberText, type_: IntegerType) -> int:
    """INT and BIGINT take any JSON number and cut its fraction off; the smaller ones do not."""
    value = int(number) if number.lstrip("-").isdigit() else float(number)
    limit = 1 << (type_.bits - 1)
    # Also of what is larger than any double. The fraction is cut off towards zero.
    if not -limit - 1 < value < limit:
        raise ValueError(f"Numeric value ({number}) out of range of {type_}")
    return int(value)


def json_text(value: Any, number_text: NumberToText | None = None) -> str:
    """What a STRING field makes of a value: texts and numbers as they stand, objects and arrays in compact form."""
    if isinstance(value, NumberText) and number_text is not None:
        return number_text(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return _compact(value, number_text or double_text)


def double_text(number: str) -> str:
    """A number as Java writes it that read a BIGINT or a DOUBLE."""
    return str(int(number)) if number.lstrip("-").isdigit() else java_double(float(number))


def stripped_text(number: str) -> str:
    """A number as Java writes it that read a whole number, or a decimal one without the zeros at its end."""
    if number.lstrip("-").isdigit():
        return str(int(number))
    with decimal.localcontext() as context:
        context.prec = decimal.MAX_PREC
        value = decimal.Decimal(number)
        return str(value.normalize()) if value else "0"


class _Piece(str):
    """Text that is written as it is."""

    __slots__ = ()


def _compact(value: Any, number_text: NumberToText) -> str:
    """Without recursion: documents may be nested deeper than Python calls."""
    # Loaded where a text is made of an object or array.
    from flowsql_compute.eval.json.document import json_string

    parts: list[str] = []
    left: list[Any] = [value]
    while left:
        match left.pop():
            case _Piece() as piece:
                parts.append(piece)
            case None:
                parts.append("null")
            case bool(truth):
                parts.append("true" if truth else "false")
            case NumberText() as number:
                parts.append(number_text(number))
            case str(text):
                parts.append(json_string(text))
            case list(items):
                inside: list[Any] = [_Piece("[")]
                for place, item in enumerate(items):
                    inside += [_Piece(","), item] if place else [item]
                left += [_Piece("]"), *reversed(inside)]
            case members:
                inside = [_Piece("{")]
                for place, (name, item) in enumerate(members.items()):
                    inside += [_Piece(f"{',' if place else ''}{json_string(name)}:"), item]
                left += [_Piece("}"), *reversed(inside)]
    return "".join(parts)
