"""Texts to show, without the values that were filled in for placeholders, and without secrets.

Definitions, plans and snapshots hold the placeholders themselves. A value may still come back in a text from elsewhere:
the message of a driver, a path, the Python trace of an error.

A secret that is a word, such as ``flowsql``, is in FlowSQL's own texts as well. Hiding it there would spoil them, and
show it to whoever knows them. So a word is hidden where something says that it is a secret, and in texts of others,
with all that it is a part of.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Final

from flowsql_core.secrets.shown import without_url_secrets

#: Values of so many characters are hidden wherever they stand, shorter ones where they are a word: ``d4ta`` is a part
#: of ``d4tabase``. Still shorter ones are hidden where they are the whole text.
_ANYWHERE: Final = 8
_AS_WORD: Final = 4
#: What may be a word of FlowSQL's own texts: letters alone. One with a digit or a hyphen is hidden wherever it is.
_WORD: Final = re.compile(r"[A-Za-z]{1,16}")
#: What is before a secret, beside blanks and marks.
_SAYS_SO: Final = r"(?:password|passwd|passphrase|pwd|secret|token|credentials?|api[-_ ]?key|access[-_ ]?key)"

_PLACEHOLDERS: Final[dict[str, str]] = {}


def hide(value: str, placeholder: str) -> None:
    """From now on texts to show hold ``placeholder`` instead of ``value``."""
    if value:
        _PLACEHOLDERS[value] = placeholder


def is_word(value: str) -> bool:
    """Return whether a value may be a word of FlowSQL's own texts.

    >>> is_word("flowsql"), is_word("x7!kTq")
    (True, False)
    """
    return _WORD.fullmatch(value) is not None


def hidden(text: str, foreign: Iterable[str] = ()) -> str:
    """Return a text as it may be shown.

    Args:
        foreign: parts of it that FlowSQL did not write.
    """
    if not _PLACEHOLDERS:
        return text
    if text in _PLACEHOLDERS and (len(text) < _AS_WORD or not is_word(text)):
        return _PLACEHOLDERS[text]
    parts = tuple(foreign)
    # Words first: what is hidden of a part makes it another one.
    for value in sorted(_PLACEHOLDERS, key=lambda value: (is_word(value), len(value)), reverse=True):
        if value not in text or len(value) < _AS_WORD:
            continue
        placeholder = _PLACEHOLDERS[value]
        if is_word(value):
            for part in parts:
                if value in part and part in text:
                    text = text.replace(part, _without_word(part, value, placeholder))
            text = _without_said(text, value, placeholder)
        elif len(value) >= _ANYWHERE:
            text = text.replace(value, placeholder)
        else:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", placeholder.replace("\\", r"\\"), text)
    return text


def foreign_texts(error: BaseException | None) -> Iterator[str]:
    """Yield what errors of others say, of an error and those that it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if not hasattr(error, "render_details"):
            text = str(error)
            yield text
            # Often only the first line, or the system's own words, are handed on.
            yield from text.splitlines()
            yield from (one for one in error.args if isinstance(one, str))
        error = error.__cause__ or error.__context__


def hidden_now(text: str) -> str:
    """Return the message of an error as it may be shown: what the error that is being handled says is foreign."""
    text = without_url_secrets(text)
    return hidden(text, foreign_texts(sys.exception())) if _PLACEHOLDERS else text


def _without_word(text: str, word: str, placeholder: str) -> str:
    """The text without all that a word is a part of: the rest of ``flowsql_db`` would show what was hidden."""
    return re.sub(rf"\S*{re.escape(word)}\S*", lambda _: placeholder, text)


def _without_said(text: str, word: str, placeholder: str) -> str:
    """The text without a word of which it says that it is a secret, and without that of a URL."""
    said = rf"(?P<before>(?i:{_SAYS_SO})['\"]?\s*(?:is|=|:|=>)?\s*['\"(]?){re.escape(word)}(?!\w)"
    text = re.sub(said, lambda found: found["before"] + placeholder, text)
    return re.sub(rf"(?<=[:/]){re.escape(word)}(?=@)", lambda _: placeholder, text)
