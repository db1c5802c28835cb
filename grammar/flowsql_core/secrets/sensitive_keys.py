"""Keys whose values are not shown: those of Flink, and ``access-key``. Source: ``GlobalConfiguration.isSensitive``."""

from __future__ import annotations

from typing import Final

#: Flink's ``GlobalConfiguration.HIDDEN_CONTENT``.
HIDDEN: Final = "******"
_PARTS: Final = (
    "password",
    "secret",
    "access-key",
    "fs.azure.account.key",
    "apikey",
    "api-key",
    "auth-params",
    "service-key",
    "token",
    "basic-auth",
    "jaas.config",
    "http-headers",
)


def shown_value(key: str, value: str) -> str:
    """The value as it may be shown.

    >>> shown_value("s3.secret-key", "xyz"), shown_value("s3.region", "eu-central-1")
    ('******', 'eu-central-1')
    """
    return HIDDEN if any(part in key.lower() for part in _PARTS) else value
