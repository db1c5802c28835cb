"""Text and bytes in other spellings: base 64, hexadecimal digits, character sets, the escapes of URLs."""

from __future__ import annotations

import base64
import binascii
import re
import string
from typing import Any
from urllib.parse import quote_plus

import pyarrow as pa

from flowsql_compute.eval.columns import spread
from flowsql_compute.eval.distinct import map_distinct, map_rows
from flowsql_compute.eval.text import spellings
from flowsql_compute.eval.text.columns import KERNEL_ROWS, url_decoded, url_encoded, with_left
from flowsql_compute.functions.registry import NULLABLE, Invocation, scalar
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError


def _column(datum: Any, n: int) -> pa.Array:
    return spread(datum, n) if isinstance(datum, pa.Scalar) else datum


# Base 64 and hexadecimal digits


@scalar("TO_BASE64(STRING) -> STRING", "TO_BASE64(BINARY) -> STRING", spark=None)
def to_base64(text: Any) -> Any:
    """The bytes (of text: in UTF-8) in base 64."""
    made = spellings.to_base64(text) if len(text) >= KERNEL_ROWS else None
    if made is not None:
        return made
    return map_distinct(pc.cast(text, pa.binary()), lambda word: base64.b64encode(word).decode(), pa.string())


@scalar("FROM_BASE64(STRING) -> STRING", "FROM_BASE64(BINARY) -> STRING", raises=True, spark=None)
def from_base64(text: Any) -> Any:
    """The text whose UTF-8 bytes are given in base 64, with or without ``=`` at the end. Fails on other letters."""
    if not pa.types.is_string(text.type):
        text = map_distinct(text, lambda word: word.decode("latin-1"), pa.string())
    if len(text) < KERNEL_ROWS:
        return map_distinct(text, _from_base64, pa.string())
    made, left = spellings.from_base64(text)
    return with_left(text, made, left, lambda rows: map_distinct(rows, _from_base64, pa.string()))


_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]")


def _from_base64(word: str) -> str:
    plain = word.rstrip("=")
    if len(plain) == 1 and len(word) == 1:
        raise ExecutionError("bad-base64", "Input byte[] should at least have 2 bytes for base64 bytes")
    wrong = _NOT_BASE64.search(plain)
    if wrong is not None and wrong[0] == "=":
        end = wrong.start() + (2 if plain[wrong.start() + 1 : wrong.start() + 2] == "=" else 1)
        raise ExecutionError("bad-base64", f"Input byte array has incorrect ending byte at {end}")
    if wrong is not None:
        raise ExecutionError("bad-base64", f"Illegal base64 character {ord(wrong[0]):x}")
    if len(plain) % 4 == 1:
        raise ExecutionError("bad-base64", "Last unit does not have enough valid bits")
    if len(plain) < len(word) and (len(word) % 4 or len(word) - len(plain) > 2):
        raise ExecutionError("bad-base64", "Input byte array has wrong 4-byte ending unit")
    return binascii.a2b_base64(plain + "=" * (-len(plain) % 4)).decode("utf-8", "replace")


@scalar("UNHEX(STRING) -> BYTES", nulls=NULLABLE, spark=None)
def unhex(text: Any) -> Any:
    """The bytes of hexadecimal digits; a first digit without partner counts as a zero byte; NULL for other letters."""
    return spellings.from_hex(text) if len(text) >= KERNEL_ROWS else map_distinct(text, _unhex, pa.binary())


def _unhex(word: str) -> bytes | None:
    try:
        if len(word) % 2 == 0:
            return binascii.unhexlify(word)
        return None if word[0] not in "0123456789abcdefABCDEF" else b"\0" + binascii.unhexlify(word[1:])
    except ValueError:
        return None


# Character sets

#: Java's canonical names and aliases to Python's, and what stands for letters that a set lacks.
_CHARSETS = {
    "utf-8": "utf-8", "utf8": "utf-8", "us-ascii": "ascii", "ascii": "ascii", "iso-8859-1": "latin-1",
    "latin1": "latin-1", "utf-16": "utf-16", "utf-16be": "utf-16-be", "utf-16le": "utf-16-le", "utf-32": "utf-32-be",
    "utf-32be": "utf-32-be", "utf-32le": "utf-32-le", "gbk": "gbk", "gb2312": "gb2312", "gb18030": "gb18030",
    "big5": "big5", "shift_jis": "shift_jis", "euc-jp": "euc_jp", "euc-kr": "euc_kr", "windows-1252": "cp1252",
    "windows-1251": "cp1251", "iso-8859-15": "iso8859-15", "iso-8859-2": "iso8859-2", "koi8-r": "koi8-r",
}  # fmt: skip


def _charset(name: str) -> str:
    found = _CHARSETS.get(name.lower())
    if found is None:
        raise ExecutionError("bad-charset", name)
    return found


def _is_null(column: pa.Array) -> bool:
    """Whether all rows are NULL, which no character set is asked for."""
    return bool(column.null_count == len(column))


@scalar("ENCODE(STRING, STRING) -> BYTES", raises=True, spark=None)
def encode(call: Invocation, text: Any, charset: Any) -> Any:
    """The text in a character set; letters that it lacks become ``?``. Fails on unknown sets."""
    if isinstance(charset, pa.Scalar) and charset.is_valid:
        name = charset.as_py()
        if _is_null(text):
            return pa.nulls(call.n, pa.binary())
        if _charset(name) == "utf-8":
            return pc.cast(_column(text, call.n), pa.binary())
        made = spellings.encoded(text, _charset(name)) if len(text) >= KERNEL_ROWS else None
        return map_distinct(text, lambda word: _encode(word, name), pa.binary()) if made is None else made
    return map_rows([_column(text, call.n), charset], _encode, pa.binary())


def _encode(word: str, name: str) -> bytes:
    charset = _charset(name)
    # Java writes a big-endian byte order mark, also none for the empty text.
    if charset == "utf-16":
        return b"\xfe\xff" + word.encode("utf-16-be") if word else b""
    return word.encode(charset, "replace")


@scalar("DECODE(BINARY, STRING) -> STRING", raises=True, spark=None)
def decode(call: Invocation, data: Any, charset: Any) -> Any:
    """The text that bytes are in a character set; malformed ones become U+FFFD. Fails on unknown sets."""
    if isinstance(charset, pa.Scalar) and charset.is_valid:
        name = charset.as_py()
        column = _column(data, call.n)
        if _is_null(column):
            return pa.nulls(call.n, pa.string())
        if _charset(name) == "utf-8":
            try:
                return pc.cast(column, pa.string())
            except pa.ArrowInvalid:
                # Some bytes are malformed.
                pass
        return map_distinct(column, lambda word: _decode(word, name), pa.string())
    return map_rows([_column(data, call.n), charset], _decode, pa.string())


def _decode(data: bytes, name: str) -> str:
    charset = _charset(name)
    if charset == "utf-16" and data[:2] not in (b"\xfe\xff", b"\xff\xfe"):
        charset = "utf-16-be"
    return data.decode(charset, "replace")


# URLs

_KEPT_IN_URLS = frozenset(string.ascii_letters + string.digits + "-_.*")


@scalar("URL_ENCODE(STRING) -> STRING", nulls=NULLABLE, spark="url_encode({0})")
def url_encode(text: Any) -> Any:
    """As a form field of a URL: blanks become ``+``, other special letters ``%XX`` of their UTF-8 bytes."""
    if len(text) >= KERNEL_ROWS:
        made = url_encoded(text, _KEPT_IN_URLS)
        if made is not None:
            return made
    return map_distinct(text, lambda word: quote_plus(word, safe="*").replace("~", "%7E"), pa.string())


_ESCAPES = re.compile("(?:%[0-9A-Fa-f]{2}|%[+][0-9A-Fa-f])+")


@scalar("URL_DECODE(STRING) -> STRING", nulls=NULLABLE, spark=None)
def url_decode(text: Any) -> Any:
    """The text of a form field of a URL; NULL where a ``%`` is not followed by two hexadecimal digits."""
    if len(text) < KERNEL_ROWS:
        return map_distinct(text, _url_decode, pa.string())
    made, left = url_decoded(text)
    return with_left(text, made, left, lambda rows: map_distinct(rows, _url_decode, pa.string()))


def _url_decode(word: str) -> str | None:
    plain = word.replace("+", " ") if "%" not in word else None
    if plain is not None:
        return plain
    made, place = [], 0
    while True:
        found = word.find("%", place)
        made.append(word[place : found if found >= 0 else len(word)].replace("+", " "))
        if found < 0:
            return "".join(made)
        run = _ESCAPES.match(word, found)
        if run is None:
            return None
        codes = bytes(int(run[0][at + 1 : at + 3], 16) for at in range(0, len(run[0]), 3))
        made.append(codes.decode("utf-8", "replace"))
        place = run.end()
