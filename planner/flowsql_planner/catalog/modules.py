"""Modules: where system functions come from. There is one, ``core``; sessions may unload it and load it again."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.span import Span
from flowsql_planner.catalog.schema import Options

CORE = "core"


class ModuleManager:
    """Loaded modules of a session and the order in which the used ones are asked."""

    def __init__(self) -> None:
        self._loaded = [CORE]
        self._used = [CORE]

    def take_over(self, other: ModuleManager) -> None:
        """Have the modules of another session."""
        self._loaded, self._used = list(other._loaded), list(other._used)

    @property
    def used(self) -> tuple[str, ...]:
        """Used modules in the order of resolution."""
        return tuple(self._used)

    def full(self) -> list[tuple[str, bool]]:
        """All loaded modules, used ones first, each with whether it is used."""
        return [(name, True) for name in self._used] + [
            (name, False) for name in self._loaded if name not in self._used
        ]

    def load(self, name: str, options: Options, at: Span | None = None) -> None:
        """LOAD MODULE."""
        shown = ", ".join(f"'{key}' = '{value}'" for key, value in options)
        head = f"Could not execute LOAD MODULE `{name}`{f' WITH ({shown})' if shown else ''}. "
        if "type" in dict(options):
            kind = dict(options)["type"]
            reason = f"Option 'type' = '{kind}' is not supported since module name is used to find module"
            raise BindError("module-options", head + reason, at)
        if name in self._loaded:
            raise BindError("module-exists", f"{head}A module with name '{name}' already exists", at)
        if name != CORE:
            raise BindError(
                "module-not-found",
                f"{head}Unable to create module '{name}'.\nCould not find any factory for identifier '{name}' that "
                f"implements a module.\nAvailable factory identifiers are: {CORE}",
                at,
            )
        if options:
            keys = ", ".join(key for key, _ in options)
            raise BindError(
                "module-options",
                f"{head}Unable to create module '{name}'.\nUnsupported options found for '{name}'.\nUnsupported "
                f"options: {keys}",
                at,
            )
        self._loaded.append(name)
        self._used.append(name)

    def unload(self, name: str, at: Span | None = None) -> None:
        """UNLOAD MODULE."""
        if name not in self._loaded:
            raise self._missing(f"Could not execute UNLOAD MODULE {name}. ", name, at)
        self._loaded.remove(name)
        if name in self._used:
            self._used.remove(name)

    def use(self, names: Sequence[str], at: Span | None = None) -> None:
        """USE MODULES: these, in this order."""
        head = f"Could not execute USE MODULES: [{', '.join(names)}]. "
        for i, name in enumerate(names):
            if name in names[:i]:
                raise BindError("module-twice", f"{head}Module '{name}' appears more than once", at)
            if name not in self._loaded:
                raise self._missing(head, name, at)
        self._used = list(names)

    def _missing(self, head: str, name: str, at: Span | None) -> BindError:
        hint = did_you_mean(name, self._loaded)
        return BindError("module-not-found", f"{head}No module with name '{name}' exists", at, hint)
