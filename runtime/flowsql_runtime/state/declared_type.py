"""Checks of what is written into state whose type was declared.

State holds Python objects as they are: a check changes no value. PyFlink finds a value that does not fit only later,
where its cache of states is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from flowsql_core.stream import state as api

#: Raises TypeError or ValueError for a value that does not fit; None lets everything pass.
Check: TypeAlias = Callable[[Any], None] | None


def check_of(descriptor: api.StateDescriptor) -> Check:
    """The check of values, elements, or of an aggregation's accumulators."""
    return _check(descriptor.name, descriptor.type_info, "value")


def map_checks_of(descriptor: api.StateDescriptor) -> tuple[Check, Check]:
    """The checks of a map's keys and values."""
    key, value = descriptor.type_info
    return _check(descriptor.name, key, "key"), _check(descriptor.name, value, "value")


_SOURCE: Final = """
def check(value):
    if not (value is None or {unchanged}):
        slow(value)
"""


def _check(name: str, type_: api.DeclaredType | None, what: str) -> Check:
    convert = None if type_ is None else type_.converter()
    if type_ is None or convert is None:
        return None

    def slow(value: Any) -> None:
        try:
            if value is not None:
                convert(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"a {what} of the state '{name}' is not of the declared type: {error}") from None

    if type_.unchanged is None:
        return slow
    # Compiled: most values are what they should be, and the test is made for each write.
    known: dict[str, Any] = {"slow": slow}
    source = _SOURCE.format(unchanged=type_.unchanged.replace("{v}", "value"))
    # Under this file's name: failures show no frames of ours.
    exec(compile(source, __file__, "exec"), known)
    check: Callable[[Any], None] = known["check"]
    return check
