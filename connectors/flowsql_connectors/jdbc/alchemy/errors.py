"""What SQLAlchemy, drivers and databases refuse, in one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from flowsql_core.errors import ConnectorError

#: Beginnings of SQLSTATE: connections lost, servers about to end, conflicts of transactions.
_PASSING_STATES: Final = ("08", "57P", "53", "40", "55P03")
#: Numbers of MySQL: lost or refused connections, locks, deadlocks.
_PASSING_NUMBERS: Final = frozenset({1040, 1053, 1205, 1213, 2002, 2003, 2006, 2013})


@contextmanager
def said(what: str, connecting: bool = False) -> Iterator[None]:
    """Errors of the database as :class:`ConnectorError`.

    Args:
        what: the place, with which the sentence begins.
        connecting: any error of the driver is one of the place, and the server may come back.
    """
    try:
        yield
    except SQLAlchemyError as error:
        passing = _is_passing(error) or (connecting and isinstance(error, OperationalError))
        raise ConnectorError("database", f"{what}: {_reason(error)}.", retryable=passing) from error


def _reason(error: SQLAlchemyError) -> str:
    """The driver's own words: SQLAlchemy adds the statement."""
    told: Any = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    arguments: Sequence[Any] = getattr(told, "args", ())
    # Drivers of MySQL and ODBC give a number or a state first.
    text = arguments[1] if len(arguments) > 1 and isinstance(arguments[1], str) else str(told)
    reason, _, more = (text.strip() or type(told).__name__).partition("\n")
    reason = reason.strip().rstrip(".")
    if reason.endswith(":"):
        reason += " " + more.strip().partition("\n")[0].removeprefix("- ").rstrip(".")
    detail = more.partition("DETAIL:")[2].strip().partition("\n")[0].rstrip(".")
    return f"{reason} ({detail})" if detail else reason


def _is_passing(error: SQLAlchemyError) -> bool:
    if not isinstance(error, DBAPIError):
        return False
    told: Any = error.orig
    state = getattr(told, "sqlstate", None) or getattr(told, "pgcode", None) or ""
    number = next(iter(getattr(told, "args", ())), None)
    return (
        error.connection_invalidated
        or (isinstance(state, str) and state.startswith(_PASSING_STATES))
        or (isinstance(number, int) and number in _PASSING_NUMBERS)
        or getattr(told, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
    )
