"""Options of formats with a schema registry, under the name of a format."""

from __future__ import annotations

import os
import urllib.parse
from typing import Any, Final

from flowsql_connectors.formats.avro.confluent.client import RegistryAddress, basic
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, optional, parse_choice, parse_positive
from flowsql_core.errors import BindError

#: Stores of Java's own kinds begin so, and with a sequence of ASN.1.
_JAVA_STORE: Final = b"\xfe\xed\xfe\xed"
_ASN1_SEQUENCE: Final = b"\x30"


def _urls(text: str) -> tuple[str, ...]:
    urls = tuple(part.strip() for part in text.split(",") if part.strip())
    for url in urls:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected http://host:port or https://host:port")
    if not urls:
        raise ValueError("expected http://host:port or https://host:port")
    return urls


class RegistryOptions:
    """What Flink's ``avro-confluent`` has; keys begin with ``prefix`` and a dot.

    ``properties.*`` are those of Confluent's client that mean something here; the other options go before them.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.url: ConnectorOption[tuple[str, ...]] = ConnectorOption(
            f"{prefix}.url", _urls, (), "URL of the schema registry, or several behind each other with commas."
        )
        self.subject = self._text("subject", "Where schemas of written rows are registered; Kafka has <topic>-value.")
        self.schema = self._text("schema", "The Avro schema of the rows; by default it is made from the columns.")
        self._source = self._choice(
            "basic-auth.credentials-source", ("USER_INFO", "URL"), "Where name and password come from."
        )
        self._user_info = self._text("basic-auth.user-info", "name:password.")
        self._token_source = self._choice(
            "bearer-auth.credentials-source", ("STATIC_TOKEN",), "Where the token comes from."
        )
        self._token = self._text("bearer-auth.token", "The token.")
        self._trusted = self._text("ssl.truststore.location", "PEM file of certificates that are trusted.")
        self._trusted_password = self._text("ssl.truststore.password", "Not for PEM files.")
        self._certificate = self._text("ssl.keystore.location", "PEM file of the client's certificate and key.")
        self._key_password = self._text("ssl.keystore.password", "Of the key.")
        self._properties = {
            "basic.auth.credentials.source": self._source,
            "basic.auth.user.info": self._user_info,
            "bearer.auth.credentials.source": self._token_source,
            "bearer.auth.token": self._token,
            "schema.registry.ssl.truststore.location": self._trusted,
            "schema.registry.ssl.truststore.password": self._trusted_password,
            "schema.registry.ssl.keystore.location": self._certificate,
            "schema.registry.ssl.keystore.password": self._key_password,
        }
        self._long = {
            name: ConnectorOption(f"{prefix}.properties.{name}", option.parse, None, option.doc)
            for name, option in self._properties.items()
        }
        self._timeout = ConnectorOption(
            f"{prefix}.properties.http.read.timeout.ms", parse_positive, 10_000, "How long an answer is waited for."
        )

    def _text(self, name: str, doc: str) -> ConnectorOption[str | None]:
        return ConnectorOption(f"{self.prefix}.{name}", optional(str), None, doc)

    def _choice(self, name: str, words: tuple[str, ...], doc: str) -> ConnectorOption[str | None]:
        return ConnectorOption(f"{self.prefix}.{name}", optional(parse_choice(*words)), None, doc)

    def all(self) -> OptionSet:
        """Every one of them."""
        own: tuple[ConnectorOption[Any], ...] = (self.subject, self.schema, *self._properties.values())
        return OptionSet(required=(self.url,), optional=(*own, *self._long.values(), self._timeout))

    def address(self, values: OptionValues) -> RegistryAddress:
        """What the options say of the registry.

        Raises:
            BindError: options that do not go together; stores that are no PEM files.
        """

        def given(name: str) -> str | None:
            short = values.get(self._properties[name])
            return values.get(self._long[name]) if short is None else short

        user_info, token = given("basic.auth.user.info"), given("bearer.auth.token")
        source, token_source = given("basic.auth.credentials.source"), given("bearer.auth.credentials.source")
        if source == "USER_INFO" and user_info is None:
            raise self._lacking(self._source, self._user_info)
        if token_source is not None and token is None:
            raise self._lacking(self._token_source, self._token)
        if user_info is not None and source != "USER_INFO":
            raise self._lacking(self._user_info, self._source, "USER_INFO")
        if token is not None and token_source is None:
            raise self._lacking(self._token, self._token_source, "STATIC_TOKEN")
        if user_info is not None and token is not None:
            raise BindError(
                "invalid-option-value", f"'{self._user_info.key}' and '{self._token.key}' cannot both be given."
            )
        if given("schema.registry.ssl.truststore.password") is not None:
            raise BindError(
                "invalid-option-value",
                f"'{self._trusted_password.key}' is for stores of Java: certificates are read from PEM files, which "
                "have no password.",
            )
        trusted = self._pem(self._trusted, given("schema.registry.ssl.truststore.location"))
        certificate = self._pem(self._certificate, given("schema.registry.ssl.keystore.location"))
        key_password = given("schema.registry.ssl.keystore.password")
        if key_password is not None and certificate is None:
            raise self._lacking(self._key_password, self._certificate)
        authorization = None
        if user_info is not None:
            authorization = basic(user_info)
        elif token is not None:
            authorization = f"Bearer {token}"
        return RegistryAddress(
            values.get(self.url), authorization, trusted, certificate, key_password, values.get(self._timeout)
        )

    @staticmethod
    def _lacking(given: ConnectorOption[Any], lacking: ConnectorOption[Any], value: str | None = None) -> BindError:
        shown = f"'{lacking.key}'" + (f" = '{value}'" if value else "")
        return BindError("missing-option", f"'{given.key}' needs {shown}.")

    @staticmethod
    def _pem(option: ConnectorOption[Any], path: str | None) -> str | None:
        if path is None:
            return None
        if not os.path.isfile(path):
            raise BindError("invalid-option-value", f"File {path} of '{option.key}' does not exist.")
        with open(path, "rb") as file:
            head = file.read(len(_JAVA_STORE))
        if head == _JAVA_STORE or head.startswith(_ASN1_SEQUENCE):
            raise BindError(
                "invalid-option-value",
                f"File {path} of '{option.key}' is a store of Java (JKS or PKCS #12), and a PEM file is wanted.",
                hint="keytool -importkeystore -deststoretype pkcs12 and openssl pkcs12 -nodes make one of it",
            )
        return path
