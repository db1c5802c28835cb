"""Modules of system functions. ``core`` is the one there is."""

from __future__ import annotations

from flowsql.common.refused import Refused


class Module:
    """Where system functions come from."""


class ModuleEntry:
    """A loaded module and whether it is used."""

    def __init__(self, name: str, used: bool) -> None:
        self._name = name
        self._used = used

    def name(self) -> str:
        """Its name."""
        return self._name

    def used(self) -> bool:
        """Whether functions are looked for in it."""
        return self._used

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModuleEntry) and (self._name, self._used) == (other._name, other._used)

    def __hash__(self) -> int:
        return hash((self._name, self._used))

    def __lt__(self, other: ModuleEntry) -> bool:
        return (self._name, self._used) < (other._name, other._used)

    def __repr__(self) -> str:
        return f"ModuleEntry{{name='{self._name}', used={'true' if self._used else 'false'}}}"


class HiveModule(metaclass=Refused, construct="it runs in a JVM", hint="functions are Python's: create_function(...)"):
    """Functions of Hive."""
