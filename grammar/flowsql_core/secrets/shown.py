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
    "accesskey",
    "passcode",
    "private.key",
)
#: Words that say so where they are a part of a key by themselves.
_WORDS: Final = frozenset(("pwd", "pass", "pw", "bearer", "jwt", "sas", "signature"))
#: Headers of requests: ``headers.X-Custom``, ``lookup.header.X-Custom``.
_HEADER: Final = re.compile(r"(^|[.])headers?[.].", re.IGNORECASE)
#: Options of a family above that say how to log in, not with what.
_HARMLESS: Final = re.compile(r"(credentials[.-]source|[.-](location|type|class|url|uri))$", re.IGNORECASE)
#: ``//name:password@``, ``//token@`` and ``?password=...``. Before the ``@`` of Azure's addresses is a container.
_IN_URL: Final = re.compile(
    r"(?<=//)(?P<user>[^/@:\s'\"]*:(?P<password>[^@\s'\"]+))@"
    r"|(?<=//)(?<!abfs://)(?<!abfss://)(?<!wasb://)(?<!wasbs://)(?P<alone>[^/@:\s'\"?#&;]+)@"
    r"|(?:[?&;]|(?<=:)//\?)(?:[\w.-]*(?:password|passwd|passphrase|secret|token|api_?key|api-key|access_?key|odbc_connect"
    r"|credential|signature)[\w.-]*|pwd|pass|sig|auth|authorization|jwt)=(?P<parameter>[^&;\s'\"]+)",
    re.IGNORECASE,
)
#: What is not shown of them: of a login with a password the name neither.
_SHOWN_GROUPS: Final = ("user", "alone", "parameter")
_OPTION: Final = re.compile(r"'(?P<key>[^'\n]+)'\s*=\s*'(?P<value>(?:[^']|'')*)'")


def is_secret(key: str) -> bool:
    """Whether the values of an option are secrets.

    >>> [is_secret(key) for key in ("properties.sasl.jaas.config", "s3.secret-key", "s3.region", "token.url")]
    [True, True, False, False]
    """
    lower = key.lower().replace("_", "-")
    if _HEADER.search(key) is not None:
        return True
    says_so = any(part in lower for part in _PARTS) or not _WORDS.isdisjoint(re.split(r"[.\-:]", lower))
    return says_so and _HARMLESS.search(key) is None


def shown_value(key: str, value: str) -> str:
    """The value of an option as statements and messages show it; a placeholder is no secret.

    >>> shown_value("password", "xyz"), shown_value("password", "${env:PW}"), shown_value("url", "http://ann:xyz@h/")
    ('******', '${env:PW}', 'http://******@h/')
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
    return [value[start:end] for start, end in _in_urls(value, ("password", "parameter"))]


def url_users(value: str) -> list[str]:
    """The users of URLs without a password, which may be tokens."""
    return [value[start:end] for start, end in _in_urls(value, ("alone",))]


def without_url_secrets(text: str) -> str:
    """A text without the users, passwords and tokens of URLs in it.

    >>> without_url_secrets("cannot reach https://t0k3n@host/x")
    'cannot reach https://******@host/x'
    """
    if "//" not in text:
        return text
    for start, end in reversed(_in_urls(text, _SHOWN_GROUPS)):
        text = text[:start] + HIDDEN + text[end:]
    return text


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
    found += [
        place for place in _in_urls(text, _SHOWN_GROUPS) if not any(start <= place[0] < end for start, end in found)
    ]
    return sorted(found)


def _in_urls(text: str, groups: tuple[str, ...]) -> list[tuple[int, int]]:
    """The places of some groups of ``_IN_URL``; of a URL whose password is a placeholder there is none."""
    return [
        url.span(group)
        for url in _IN_URL.finditer(text)
        for group in groups
        if url[group] is not None and not is_placeholder(url["password"] or url[group])
    ]
