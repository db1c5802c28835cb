"""The tokens of one JSON document, read from its bytes one after another as Jackson reads them.

Texts are decoded only when they are asked for, so a text that cannot be decoded is the fault of its field alone, and
reading goes on behind it. Nothing here is recursive: a document may be nested 1,000 deep, Jackson's own limit.

Source: Jackson's ``UTF8StreamJsonParser`` with ``ALLOW_UNESCAPED_CONTROL_CHARS``, as Flink 2.3 sets it up; asked in
``tests/connectors/formats/asked_json_damage.json``.
"""

from __future__ import annotations

import enum
import re
import sys
from array import array
from typing import Any, Final

#: Jackson's limits: how deep a document is nested, and the digits of a number.
DEEPEST: Final = 1000
MOST_DIGITS: Final = 1000

_BLANKS: Final = re.compile(rb"[ \t\r\n]*")
_PLAIN_TEXT: Final = re.compile(rb'[^"\\\x80-\xff]*"')
_PLAIN_BYTES: Final = re.compile(rb'[^"\\\x80-\xff]*')
_NUMBER: Final = re.compile(rb"-?([0-9]+)(\.[0-9]*)?([eE][+-]?[0-9]*)?")
_WORD: Final = re.compile(rb"[A-Za-z0-9_$]*")
_ESCAPES: Final = {b"b"[0]: 8, b"t"[0]: 9, b"n"[0]: 10, b"f"[0]: 12, b"r"[0]: 13, 0x22: 0x22, 0x2F: 0x2F, 0x5C: 0x5C}
_HEX: Final = {code: int(chr(code), 16) for code in b"0123456789abcdefABCDEF"}
_MARKS: Final = (
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\xfe\xff", "utf-16-be"),
    (b"\xff\xfe", "utf-16-le"),
)
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_QUOTE, _BACKSLASH, _COMMA, _COLON = 0x22, 0x5C, 0x2C, 0x3A
_END: Final = "Unexpected end-of-input"


class NumberText(str):
    """A number as it is written in the document."""

    __slots__ = ()


class Token(enum.Enum):
    """What stands at the place that was read last."""

    OBJECT = enum.auto()
    END_OBJECT = enum.auto()
    ARRAY = enum.auto()
    END_ARRAY = enum.auto()
    NAME = enum.auto()
    TEXT = enum.auto()
    NUMBER = enum.auto()
    TRUE = enum.auto()
    FALSE = enum.auto()
    NULL = enum.auto()


_CONSTANTS: Final = {b"true": Token.TRUE, b"false": Token.FALSE, b"null": Token.NULL}
_OPENING: Final = {0x7B: Token.OBJECT, 0x5B: Token.ARRAY}
_CLOSING: Final = {0x7D: Token.END_OBJECT, 0x5D: Token.END_ARRAY}
_SHOWN: Final = {
    Token.OBJECT: "{",
    Token.END_OBJECT: "}",
    Token.ARRAY: "[",
    Token.END_ARRAY: "]",
    Token.TRUE: "true",
    Token.FALSE: "false",
    Token.NULL: "null",
}


class JsonTokens:
    """Reads the tokens of a document.

    Args:
        document: its bytes: UTF-8, or UTF-16 or UTF-32 that Jackson would notice.

    Example:
        >>> tokens = JsonTokens(b'{"a":1}')
        >>> [tokens.advance() for _ in range(4)]
        [<Token.OBJECT: 1>, <Token.NAME: 5>, <Token.NUMBER: 7>, <Token.END_OBJECT: 2>]
    """

    def __init__(self, document: bytes) -> None:
        self._data = _as_utf8(document)
        self._at = 0
        #: The token at the current place; None before the first one and after the last one.
        self.token: Token | None = None
        self._after_name: Token | None = None
        self._name = ""
        self._number = NumberText("")
        #: A text whose bytes have not been read yet.
        self._pending_text = False
        self._text = ""
        #: Of each open container whether it is an object, and how many members of it began.
        self._objects: list[bool] = []
        self._begun: list[int] = [0]

    def advance(self) -> Token | None:
        """Go to the next token and return it; None behind the last one.

        Raises:
            ValueError: what follows is no JSON.
        """
        if self.token is Token.NAME:
            self.token, self._after_name = self._after_name, None
            if self.token is Token.OBJECT or self.token is Token.ARRAY:
                self._open(self.token)
            return self.token
        if self._pending_text:
            self._pending_text = False
            self._read_text()
        code = self._behind_blanks()
        if code is None:
            if self._objects:
                raise ValueError(f"{_END}: expected close marker for {'Object' if self._objects[-1] else 'Array'}")
            self.token = None
            return None
        if code in _CLOSING:
            return self._close(code)
        inside = bool(self._objects)
        self._begun[-1] += 1
        if inside and self._begun[-1] > 1:
            if code != _COMMA:
                within = "Object" if self._objects[-1] else "Array"
                raise self._unexpected(code, f"was expecting comma to separate {within} entries")
            self._at += 1
            code = self._some_code()
        if not inside or not self._objects[-1]:
            self.token = self._value(code)
            if self.token is Token.OBJECT or self.token is Token.ARRAY:
                self._open(self.token)
            return self.token
        if code != _QUOTE:
            raise self._unexpected(code, "was expecting double-quote to start field name")
        self._at += 1
        self._name = self._read_text()
        self.token = Token.NAME
        code = self._some_code()
        if code != _COLON:
            raise self._unexpected(code, "was expecting a colon to separate field name and value")
        self._at += 1
        self._after_name = self._value(self._some_code())
        return self.token

    def text(self) -> str | None:
        """Return the token as text: texts, names, numbers as they are written, the marks of containers.

        Raises:
            ValueError: the bytes of a text are no UTF-8, or an escape in it is cut. Reading goes on behind them.
        """
        match self.token:
            case Token.TEXT:
                if self._pending_text:
                    self._pending_text = False
                    self._text = ""
                    self._text = self._read_text()
                return self._text
            case Token.NAME:
                return self._name
            case Token.NUMBER:
                return str(self._number)
        return None if self.token is None else _SHOWN[self.token]

    def scalar(self) -> Any:
        """Return the value at the current token, which is no container: a text, a number as written, a constant."""
        match self.token:
            case Token.NUMBER:
                return self._number
            case Token.TRUE | Token.FALSE:
                return self.token is Token.TRUE
            case Token.NULL:
                return None
        return self.text()

    def tree(self) -> Any:
        """Return the value that begins here, containers as dict and list; the last of equal names counts.

        The place is then at the value's last token.

        Raises:
            ValueError: what follows is no JSON.
        """
        open_: list[Any] = []
        names: list[str] = []
        while True:
            if self.token is Token.NAME:
                name = self._name
                self.advance()
            else:
                name = ""
            if self.token is Token.OBJECT or self.token is Token.ARRAY:
                open_.append({} if self.token is Token.OBJECT else [])
                names.append(name)
                self.advance()
                continue
            if self.token is Token.END_OBJECT or self.token is Token.END_ARRAY:
                value, name = open_.pop(), names.pop()
            else:
                value = self.scalar()
            if not open_:
                return value
            if isinstance(open_[-1], list):
                open_[-1].append(value)
            else:
                open_[-1][name] = value
            self.advance()

    def skip(self) -> None:
        """Go behind the value at the current token.

        Raises:
            ValueError: what follows is no JSON.
        """
        if self.token is None:
            raise ValueError(_END)
        depth = 1 if self.token is Token.OBJECT or self.token is Token.ARRAY else 0
        while depth:
            match self.advance():
                case Token.OBJECT | Token.ARRAY:
                    depth += 1
                case Token.END_OBJECT | Token.END_ARRAY:
                    depth -= 1
                case None:
                    raise ValueError(_END)
        self.advance()

    def _open(self, token: Token) -> None:
        if len(self._objects) == DEEPEST:
            raise ValueError(f"Document nesting depth ({DEEPEST + 1}) exceeds the maximum allowed ({DEEPEST})")
        self._objects.append(token is Token.OBJECT)
        self._begun.append(0)

    def _close(self, code: int) -> Token:
        token = _CLOSING[code]
        if not self._objects or self._objects[-1] != (token is Token.END_OBJECT):
            raise self._unexpected(code, "it closes nothing that is open")
        self._at += 1
        self._objects.pop()
        self._begun.pop()
        self.token = token
        return token

    def _behind_blanks(self) -> int | None:
        """The next byte that is no blank; None at the end."""
        blanks = _BLANKS.match(self._data, self._at)
        assert blanks is not None
        self._at = blanks.end()
        return self._data[self._at] if self._at < len(self._data) else None

    def _some_code(self) -> int:
        code = self._behind_blanks()
        if code is None:
            raise ValueError(_END)
        return code

    def _next_code(self) -> int:
        if self._at >= len(self._data):
            raise ValueError(f"{_END} in a text")
        self._at += 1
        return self._data[self._at - 1]

    def _unexpected(self, code: int, reason: str) -> ValueError:
        shown = chr(code) if 0x20 < code < 0x7F else f"\\x{code:02x}"
        return ValueError(f"Unexpected character ('{shown}'): {reason}")

    def _value(self, code: int) -> Token:
        """The token of the value that begins with ``code``; texts and containers are read later."""
        if code == _QUOTE:
            self._at += 1
            self._pending_text = True
            return Token.TEXT
        if code in _OPENING:
            self._at += 1
            return _OPENING[code]
        number = _NUMBER.match(self._data, self._at)
        if number is not None:
            return self._numeric(number)
        word = _WORD.match(self._data, self._at)
        assert word is not None
        if word.group() in _CONSTANTS:
            self._at = word.end()
            return _CONSTANTS[word.group()]
        if word.group():
            raise ValueError(f"Unrecognized token '{word.group().decode()}'")
        raise self._unexpected(code, "expected a valid value")

    def _numeric(self, found: re.Match[bytes]) -> Token:
        whole, fraction, power = found.groups()
        if len(whole) > 1 and whole.startswith(b"0"):
            raise ValueError("Invalid numeric value: Leading zeroes not allowed")
        if fraction == b".":
            raise ValueError("Decimal point not followed by a digit")
        if power is not None and not power[-1:].isdigit():
            raise ValueError("Exponent indicator not followed by a digit")
        if len(found.group()) > MOST_DIGITS and sum(0x30 <= code <= 0x39 for code in found.group()) > MOST_DIGITS:
            raise ValueError(f"Number value length exceeds the maximum allowed ({MOST_DIGITS})")
        self._at = found.end()
        self._number = NumberText(found.group().decode())
        return Token.NUMBER

    def _read_text(self) -> str:
        """The text up to the next quote; where that fails, the place is behind the byte that is wrong."""
        plain = _PLAIN_TEXT.match(self._data, self._at)
        if plain is not None:
            self._at = plain.end()
            return plain.group()[:-1].decode("ascii")
        units: list[int] = []
        while True:
            plain = _PLAIN_BYTES.match(self._data, self._at)
            assert plain is not None
            units.extend(plain.group())
            self._at = plain.end()
            code = self._next_code()
            if code == _QUOTE:
                return _text_of(units)
            if code == _BACKSLASH:
                units.append(self._escape())
            else:
                self._character(code, units)

    def _escape(self) -> int:
        code = self._next_code()
        if code in _ESCAPES:
            return _ESCAPES[code]
        if code != 0x75:
            raise ValueError(f"Unrecognized character escape '\\{chr(code)}'")
        value = 0
        for _ in range(4):
            digit = _HEX.get(code := self._next_code())
            if digit is None:
                raise self._unexpected(code, "expected a hex-digit for character escape sequence")
            value = value << 4 | digit
        return value

    def _character(self, lead: int, units: list[int]) -> None:
        """A character of two to four bytes, added as one or two units of UTF-16. Long forms are taken, as by Java."""
        if lead & 0xE0 == 0xC0:
            units.append((lead & 0x1F) << 6 | self._more())
        elif lead & 0xF0 == 0xE0:
            first = self._more()
            units.append((lead & 0x0F) << 12 | first << 6 | self._more())
        elif lead & 0xF8 == 0xF0:
            first, second = self._more(), self._more()
            value = ((lead & 0x07) << 18 | first << 12 | second << 6 | self._more()) - 0x10000
            units += (0xD800 | value >> 10) & 0xFFFF, 0xDC00 | value & 0x3FF
        else:
            raise ValueError(f"Invalid UTF-8 start byte 0x{lead:02x}")

    def _more(self) -> int:
        code = self._next_code()
        if code & 0xC0 != 0x80:
            raise ValueError(f"Invalid UTF-8 middle byte 0x{code:02x}")
        return code & 0x3F


def _text_of(units: list[int]) -> str:
    """Units of UTF-16 as text; half of a surrogate pair that stands alone is ``?``, as when Java writes UTF-8."""
    whole = array("H", units).tobytes().decode(f"utf-16-{sys.byteorder[0]}e", "surrogatepass")
    return whole.encode("utf-8", "replace").decode()


def _as_utf8(document: bytes) -> bytes:
    """The document in UTF-8 without a byte order mark."""
    if document.startswith(_UTF8_MARK):
        return document[len(_UTF8_MARK) :]
    for mark, encoding in _MARKS:
        if document.startswith(mark):
            return _encoded_anew(document[len(mark) :], encoding)
    head = document[:4]
    if len(head) == 4 and 0 in head:
        zeros = tuple(byte == 0 for byte in head)
        for pattern, encoding in (
            ((True, True, True, False), "utf-32-be"),
            ((False, True, True, True), "utf-32-le"),
        ):
            if zeros == pattern:
                return _encoded_anew(document, encoding)
    if len(head) >= 2 and (head[0] == 0) != (head[1] == 0):
        return _encoded_anew(document, "utf-16-be" if head[0] == 0 else "utf-16-le")
    return document


def _encoded_anew(document: bytes, encoding: str) -> bytes:
    width = 4 if encoding.startswith("utf-32") else 2
    whole = document[: len(document) // width * width]
    return whole.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")
