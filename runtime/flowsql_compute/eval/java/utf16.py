"""Java counts UTF-16 units where it works on ``String``: text as one character a unit, and back."""

from __future__ import annotations


def units(text: str) -> str:
    """The text with surrogate pairs in place of characters beyond the basic plane."""
    if not text or max(text) <= "\uffff":
        return text
    return "".join(map(chr, memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")))


def joined(text: str) -> str:
    """The inverse of :func:`units`; half a pair becomes ``?``, as when Java writes UTF-8.

    >>> joined(units("a\\U0001f600")[:2])
    'a?'
    """
    if text.isascii() or not any("\ud800" <= letter < "\ue000" for letter in text):
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return whole.encode("utf-8", "replace").decode()
