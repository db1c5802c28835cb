"""Secrets that stand in definitions as they are: hidden from messages, and kept out of files that outlive a session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from flowsql_core.errors import BindError
from flowsql_core.secrets.hidden import hide, is_word
from flowsql_core.secrets.shown import HIDDEN, is_secret, plain_secrets, shown_value, url_users

#: Characters from which on a secret is taken for one: a short word may stand in any message.
_FEWEST: Final = 8
#: A word is hidden in fewer places.
_FEWEST_OF_WORDS: Final = 4


def hide_plain(options: Iterable[tuple[str, str]]) -> None:
    """From now on what comes back of secrets in options, in the message of a driver, is hidden.

    What another option shows, a user whose password is the user's name, is no secret.
    """
    given = tuple(options)
    for key, value in given:
        users = [] if is_secret(key) else [user for user in url_users(value) if not is_word(user)]
        for secret in [*plain_secrets(key, value), *users]:
            fewest = _FEWEST_OF_WORDS if is_word(secret) else _FEWEST
            if len(secret) >= fewest and not any(secret in shown_value(*other) for other in given):
                hide(secret, HIDDEN)


def refuse_plain_secrets(options: Iterable[tuple[str, str]], owner: str, where: str) -> None:
    """Definitions in files refer to secrets.

    Args:
        owner: what has the options. ``where``: what they would be written to.

    Raises:
        BindError: ``plain-secret``.
    """
    for key, value in options:
        if plain_secrets(key, value):
            raise BindError(
                "plain-secret",
                f"The secret in '{key}' of {owner} would stand in {where} for everyone who can read that.",
                hint=f"write '{key}' = '${{env:NAME}}' or '${{file:PATH}}', which is filled in where it is used",
            )
