"""Texts to show, without the values that were filled in for placeholders.

Definitions, plans and snapshots hold the placeholders themselves. A value may still come back in a text from elsewhere:
the message of a driver, a path, the Python trace of an error.
"""

from __future__ import annotations

import re
from typing import Final

#: Values of so many characters are hidden wherever they stand, shorter ones where they are a word: ``data`` is a part
#: of ``database``. Still shorter ones are hidden where they are the whole text.
_ANYWHERE: Final = 8
_AS_WORD: Final = 4

_PLACEHOLDERS: Final[dict[str, str]] = {}


def hide(value: str, placeholder: str) -> None:
    """From now on texts to show hold ``placeholder`` instead of ``value``."""
    if value:
        _PLACEHOLDERS[value] = placeholder


def hidden(text: str) -> str:
    """The text as it may be shown."""
    if not _PLACEHOLDERS:
        return text
    if text in _PLACEHOLDERS:
        return _PLACEHOLDERS[text]
    for value in sorted(_PLACEHOLDERS, key=len, reverse=True):
        if value not in text or len(value) < _AS_WORD:
            continue
        if len(value) >= _ANYWHERE:
            text = text.replace(value, _PLACEHOLDERS[value])
        else:
            placeholder = _PLACEHOLDERS[value].replace("\\", r"\\")
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", placeholder, text)
    return text
