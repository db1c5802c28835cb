"""Clients of MongoDB, and what is said when something is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from flowsql_connectors.messages.client import imported
from flowsql_connectors.mongodb.options import COLLECTION, DATABASE, URI
from flowsql_connectors.options import OptionValues
from flowsql_core.errors import BindError, ConnectorError

#: How long a server is looked for, where the connection string does not say (``serverSelectionTimeoutMS``).
_SELECTION_MS: Final = 10_000
#: Codes of servers that refuse a login or a permission.
_REFUSED: Final = (13, 18, 8000)


def connect(values: OptionValues) -> Any:
    """A client; it connects when it is first asked.

    Raises:
        BindError: the connection string is none.
        ConnectorError: the client library is not installed.
    """
    library = imported("pymongo", "mongodb", "mongodb")
    uri = values.get(URI)
    given = {} if "serverselectiontimeoutms" in uri.lower() else {"serverSelectionTimeoutMS": _SELECTION_MS}
    try:
        return library.MongoClient(uri, appname="FlowSQL", **given)
    except library.errors.PyMongoError as error:
        raise BindError("invalid-option-value", f"'{URI.key}' is no connection string: {_sentence(error)}.") from None


def collection_of(client: Any, values: OptionValues) -> Any:
    """The collection, whose moments are numbers: milliseconds beyond the years of Python, too."""
    bson = imported("bson.codec_options", "mongodb", "mongodb")
    options = bson.CodecOptions(datetime_conversion=bson.DatetimeConversion.DATETIME_MS)
    return client.get_database(values.get(DATABASE)).get_collection(values.get(COLLECTION), codec_options=options)


@contextmanager
def told(values: OptionValues) -> Iterator[None]:
    """Errors of the client library as one sentence each.

    Raises:
        ConnectorError: instead of them.
    """
    library = imported("pymongo", "mongodb", "mongodb")
    errors = library.errors
    try:
        yield
    except errors.BulkWriteError as error:
        raise _bulk(error, values) from None
    except errors.OperationFailure as error:
        if error.code in _REFUSED:
            raise ConnectorError(
                "mongodb-refused",
                f"MongoDB at {hosts(values)} refused: {_sentence(error)}.",
                hint=f"user and password of '{URI.key}', and what the user may do",
            ) from None
        raise ConnectorError(
            "mongodb-error",
            f"MongoDB at {hosts(values)} says: {_sentence(error)}.",
            retryable=bool(error.has_error_label("RetryableWriteError")),
        ) from None
    except errors.ConnectionFailure as error:
        raise ConnectorError(
            "mongodb-unreachable", f"MongoDB at {hosts(values)} does not answer: {_sentence(error)}.", retryable=True
        ) from None
    except (errors.PyMongoError, errors.InvalidDocument) as error:
        raise ConnectorError("mongodb-error", f"MongoDB at {hosts(values)}: {_sentence(error)}.") from None


def hosts(values: OptionValues) -> str:
    """Where the servers are, for messages."""
    return values.get(URI).partition("://")[2].partition("/")[0].rpartition("@")[2]


def _bulk(error: Any, values: OptionValues) -> ConnectorError:
    failures = error.details.get("writeErrors") or error.details.get("writeConcernErrors") or [{}]
    first = failures[0]
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    return ConnectorError(
        "mongodb-write",
        f"Collection '{values.get(DATABASE)}.{values.get(COLLECTION)}' refused a document{more}: "
        f"{str(first.get('errmsg', error)).rstrip('.')}.",
        retryable=bool(error.has_error_label("RetryableWriteError")),
    )


def _sentence(error: Any) -> str:
    details = getattr(error, "details", None)
    text = details["errmsg"] if isinstance(details, dict) and "errmsg" in details else str(error)
    return str(text).splitlines()[0].partition(" (configured timeouts")[0].partition(", Timeout: ")[0].rstrip(".")
