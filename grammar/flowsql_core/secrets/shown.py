"""Options whose values are never shown, in WITH clauses and in configurations; passwords in URLs.

Source: Flink, ``GlobalConfiguration.isSensitive``, and what connectors have besides.
"""

from __future__ import annotations

import re
from typing import Final

from flowsql_core.secrets.references import has_placeholder, is_placeholder

HIDDEN: Final = "******"
_PARTS: Final = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "access-key",
    "account.key",
    "connection-string",
    "credential",
    "sas-key",
    "account-key",
    "apikey",
    "api-key",
    "api.key",
    "auth-params",
    "authorization",
    "cookie",
    "service-key",
    "private-key",
    "token",
    "basic-auth",
    "basic.auth",
    "jaas.config",
    "http-headers",
    "ssl.key.pem",
    "ssl.keystore.key",
)
#: Options of a family above that say how to log in, not with what.
_HARMLESS: Final = re.compile(r"(credentials[.-]source|[.-](location|type|class|url|uri))$", re.IGNORECASE)
#: ``//name:password@`` and ``?password=...``, the password being what is found.
_IN_URL: Final = re.compile(
    r"(?<=//)[^/@:\s'\"]*:(?P<user>[^@\s'\"]+)@"
    r"|[?&;][\w.-]*(?:password|passwd|secret|token|apikey|api_key|access_key|odbc_connect)[\w.-]*=(?P<parameter>[^&;\s'\"]+)",
    re.IGNORECASE,
)
_OPTION: Final = re.compile(r"'(?P<key>[^'\n]+)'\s*=\s*'(?P<value>(?:[^']|'')*)'")


def is_secret(key: str) -> bool:
    """Whether the values of an option are secrets.

    >>> [is_secret(key) for key in ("properties.sasl.jaas.config", "s3.secret-key", "s3.region", "token.url")]
    [True, True, False, False]
    """
    lower = key.lower().replace("_", "-")
    return any(part in lower for part in _PARTS) and _HARMLESS.search(key) is None


def shown_value(key: str, value: str) -> str:
    """The value of an option as statements and messages show it; a placeholder is no secret.

    >>> shown_value("password", "xyz"), shown_value("password", "${env:PW}"), shown_value("url", "http://ann:xyz@h/")
    ('******', '${env:PW}', 'http://ann:******@h/')
    >>> shown_value("url", "mssql+pyodbc://?odbc_connect=Server%3Dh%3BPWD%3Dxyz")
    'mssql+pyodbc://?odbc_connect=******'
    """
    if is_secret(key):
        return value if is_placeholder(value) or not value else HIDDEN
    return without_secrets(value)


def plain_secrets(key: str, value: str) -> list[str]:
    """The parts of an option's value that are secrets and stand there as they are; none where it has a reference."""
    if is_secret(key):
        return [] if has_placeholder(value) or not value else [value]
    return [value[start:end] for start, end in _in_urls(value)]


def without_secrets(text: str) -> str:
    """A text, of SQL or of any other kind, without the values of secret options and the passwords of URLs.

    >>> without_secrets("WITH ('user' = 'ann', 'password' = 'xyz')")
    "WITH ('user' = 'ann', 'password' = '******')"
    """
    if "'" not in text and "=" not in text and "@" not in text:
        return text
    for start, end in reversed(secret_places(text)):
        text = text[:start] + HIDDEN + text[end:]
    return text


def with_shown_options(sql: str) -> str:
    """A text of SQL with the values of its options as :func:`shown_value` has them; other literals are data.

    >>> with_shown_options("SELECT 'http://a:b@c' FROM t /*+ OPTIONS('password'='xyz') */")
    "SELECT 'http://a:b@c' FROM t /*+ OPTIONS('password'='******') */"
    """

    def shown(option: re.Match[str]) -> str:
        whole, (start, end) = option.group(), option.span("value")
        first = start - option.start()
        return whole[:first] + shown_value(option["key"], option["value"]) + whole[first + end - start :]

    return _OPTION.sub(shown, sql)


def options_in(text: str) -> list[tuple[str, str]]:
    """What looks like options in a text of SQL: keys and values.

    >>> options_in("SELECT * FROM t /*+ OPTIONS('a'='b') */")
    [('a', 'b')]
    """
    return [(option["key"], option["value"]) for option in _OPTION.finditer(text)]


def secret_places(text: str) -> list[tuple[int, int]]:
    """Where secrets stand in a text, as half-open ranges of characters, rising."""
    found = [
        option.span("value")
        for option in _OPTION.finditer(text)
        if is_secret(option["key"]) and option["value"] and not is_placeholder(option["value"])
    ]
    found += [place for place in _in_urls(text) if not any(start <= place[0] < end for start, end in found)]
    return sorted(found)


def _in_urls(text: str) -> list[tuple[int, int]]:
    places = [url.span("user" if url["user"] is not None else "parameter") for url in _IN_URL.finditer(text)]
    return [(start, end) for start, end in places if not is_placeholder(text[start:end])]
