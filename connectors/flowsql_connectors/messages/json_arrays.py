"""The elements of a JSON array, as their texts: numbers keep all their digits."""

from __future__ import annotations

import json
import re
from typing import Final

_BLANKS: Final = re.compile(r"[ \t\n\r]*")
#: Reads a value without making numbers of its digits.
SCAN: Final = json.JSONDecoder(parse_float=str, parse_int=str, strict=False)


def elements_of(raw: bytes) -> list[bytes] | None:
    """The texts of the elements; None: the bytes are no JSON array.

    >>> elements_of(b' [1.10, {"a": [2]}] ')
    [b'1.10', b'{"a": [2]}']
    >>> elements_of(b"[1, 2") is elements_of(b"{}") is elements_of(b"[1] 2") is None
    True
    """
    try:
        text = raw.decode()
        at = blank(text, 0)
        if text[at : at + 1] != "[":
            return None
        found: list[bytes] = []
        at = blank(text, at + 1)
        while text[at : at + 1] != "]" or found:
            _, end = SCAN.raw_decode(text, at)
            found.append(text[at:end].encode())
            at = blank(text, end)
            if text[at : at + 1] != ",":
                break
            at = blank(text, at + 1)
    except (ValueError, RecursionError):
        # What is nested too deep for this is left to the format.
        return None
    return found if text[at : at + 1] == "]" and blank(text, at + 1) == len(text) else None


def blank(text: str, at: int) -> int:
    """Behind the blanks at a place."""
    found = _BLANKS.match(text, at)
    assert found is not None
    return found.end()
