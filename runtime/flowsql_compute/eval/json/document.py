"""JSON documents of a column: each distinct text is parsed once for all paths into it; numbers keep their text.

Numbers with a fraction or an exponent are ``decimal.Decimal`` once they are looked at, as Jackson's ``BigDecimal``:
they print with the digits they were written with. What stands behind the first value of a text is not read.

Source: RFC 8259; Jackson's defaults.
"""

from __future__ import annotations

import gc
import json
import re
import threading
import weakref
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import orjson
import pyarrow as pa

from flowsql_compute.eval.text.java_numbers import java_double
from flowsql_core.arrow import compute as pc
from flowsql_core.interpreter.large_stack import in_large_stack

#: Texts in which the quick parser may have changed a number.
_INEXACT: Final = re.compile(r"[0-9][.eE]|[0-9]{19}")
_SPACE: Final = " \t\n\r"


_loads = orjson.loads

_TOO_DEEP: Final = "nested deeper than 1000 levels"
#: Jackson's limit of levels, and what nests or ends in a text.
DEEPEST: Final = 1000
_MARKS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{\]}]', re.DOTALL)


def too_deep(text: str) -> bool:
    """Whether a document is nested deeper than Jackson reads."""
    if len(text) <= DEEPEST or text.count("[") + text.count("{") <= DEEPEST:
        return False
    depth = 0
    for mark in _MARKS.finditer(text):
        depth += (mark[0] in "[{") - (mark[0] in "]}")
        if depth > DEEPEST:
            return True
    return False


class Document:
    """A parsed text, or one that is no JSON (``broken``)."""

    __slots__ = ("_exact", "_text", "broken", "root")

    #: The value: dict, list, str, int, float, bool or None.
    root: Any
    broken: str | None

    def __init__(self, text: str) -> None:
        self._text = text
        self._exact = False
        self.broken = None
        try:
            self.root = _loads(text)
        except ValueError:
            self.root = None
            self._read_again()
        if too_deep(text):
            self.root, self.broken, self._exact = None, _TOO_DEEP, True

    @property
    def blank(self) -> bool:
        """Whether there is nothing but white space."""
        return not self._text.strip(_SPACE)

    def exact(self) -> Any:
        """The root with numbers as they were written; the same object as ``root`` from then on."""
        if not self._exact:
            self._exact = True
            if self.broken is None and _INEXACT.search(self._text) is not None:
                self._read_again()
        return self.root

    def _read_again(self) -> None:
        self._exact = True
        try:
            self.root = read_json(self._text)
        except ValueError as error:
            self.broken = str(error)


def read_json(text: str, decoder: json.JSONDecoder | None = None) -> Any:
    """The first value of a text, numbers exact, or as ``decoder`` makes them.

    Raises:
        ValueError: it does not begin with JSON.
    """
    if too_deep(text):
        raise ValueError(_TOO_DEEP)
    start = len(text) - len(text.lstrip(_SPACE))
    chosen = decoder or _EXACT
    try:
        value, end = chosen.raw_decode(text, start)
    except RecursionError:
        value, end = in_large_stack(lambda: chosen.raw_decode(text, start))
    ends_by_itself = isinstance(value, dict | list | str)
    if not ends_by_itself and end < len(text) and text[end] not in _SPACE:
        raise ValueError(f"Unexpected character '{text[end]}' behind a value")
    return value


def _number(text: str) -> Decimal:
    made = Decimal(text)
    return made.copy_abs() if made.is_zero() else made


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"Non-standard token '{text}'")


_EXACT: Final = json.JSONDecoder(parse_float=_number, parse_constant=_refuse_constant)


class Documents:
    """The documents of a column: the distinct ``texts``, and which one each row has (None: row i has text i)."""

    __slots__ = ("_kept", "_uses", "rows", "texts")

    def __init__(self, column: Any) -> None:
        encoded = pc.dictionary_encode(column)
        self.texts: list[str] = encoded.dictionary.to_pylist()
        self.rows: Any = None if len(self.texts) == len(column) else encoded.indices
        self._kept: list[Document] | None = None
        self._uses = 0

    def map(self, function: Callable[[Document], Any], type_: pa.DataType) -> Any:
        """A column of ``function`` of each row's document; NULL rows stay NULL."""
        made = pa.array(self._values(function), type_)
        return made if self.rows is None else pc.take(made, self.rows)

    def _values(self, function: Callable[[Document], Any]) -> list[Any]:
        # A single path looks at one document after another; a second path is a reason to keep them.
        self._uses += 1
        if self._uses == 1:
            return [function(Document(text)) for text in self.texts]
        if self._kept is None:
            self._kept = _without_collection(self.texts)
        return [function(document) for document in self._kept]


def _without_collection(texts: list[str]) -> list[Document]:
    """All documents, parsed while the cycle collector rests: it would walk them again and again and find nothing."""
    if not gc.isenabled():
        return [Document(text) for text in texts]
    gc.disable()
    try:
        return [Document(text) for text in texts]
    finally:
        gc.enable()


_latest = threading.local()


def documents_of(column: Any) -> Documents:
    """The documents of a text column; several paths into the same column of a batch share them."""
    known = getattr(_latest, "column", None)
    if known is not None and known() is column:
        found: Documents = _latest.documents
        return found
    made = Documents(column)
    _latest.documents = made
    _latest.column = weakref.ref(column, _forget)
    return made


def _forget(reference: Any) -> None:
    """A batch that is gone takes its documents with it (from whatever thread lets go of it last)."""
    if getattr(_latest, "column", None) is reference:
        _latest.documents = _latest.column = None


# Text


def scalar_text(value: Any) -> str:
    """A number, truth value or text as Java's ``String.valueOf`` writes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return java_double(value) if isinstance(value, float) else str(value)


def json_text(value: Any) -> str:
    """A value as JSON without blanks, keys sorted."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):
        try:
            return _written(value)
        except RecursionError:
            return in_large_stack(lambda: _written(value))
    # Jackson writes control characters with capital digits.
    return text.decode() if b"\\u00" not in text else _written(value)


def _written(value: Any) -> str:
    match value:
        case None:
            return "null"
        case str():
            return json_string(value)
        case dict():
            return "{" + ",".join(f"{json_string(key)}:{_written(item)}" for key, item in sorted(value.items())) + "}"
        case list():
            return "[" + ",".join(map(_written, value)) + "]"
    return scalar_text(value)


_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def json_string(text: str) -> str:
    """A text as a JSON string literal; halves of surrogate pairs become ``?``, as UTF-8 has none."""
    made = _ESCAPED.sub(lambda found: _SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}", text)
    return f'"{well_formed(made)}"'


def well_formed(text: str) -> str:
    """The text with halves of surrogate pairs replaced by ``?``, as Java encodes them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
