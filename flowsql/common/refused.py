"""What PyFlink has and FlowSQL has not: the names can be imported, whatever is done with them is refused."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NoReturn

from flowsql_core.errors import NotSupportedYetError


class Refused(type):
    """The class of classes that only have a name: making one, or asking one for anything, raises.

    >>> class Checkpoints(metaclass=Refused, construct="checkpoints"): ...

    Args of a class statement:
        construct: what is refused.
        hint: the way that there is.
    """

    _refused: tuple[str, str | None]

    def __new__(
        cls, name: str, bases: tuple[type, ...], body: dict[str, Any], construct: str = "", hint: str | None = None
    ) -> Refused:
        """Subclasses, a program's own too, are refused as what they extend."""
        made = super().__new__(cls, name, bases, body)
        if construct:
            made._refused = (f"{name} ({construct})", hint)
        return made

    def __init__(
        cls, name: str, bases: tuple[type, ...], body: dict[str, Any], construct: str = "", hint: str | None = None
    ) -> None:
        super().__init__(name, bases, body)

    def refuse(cls) -> NoReturn:
        """Raise.

        Raises:
            NotSupportedYetError: always.
        """
        construct, hint = cls._refused
        raise NotSupportedYetError(construct, hint=hint)

    def __call__(cls, *args: Any, **named: Any) -> NoReturn:
        """Refused."""
        cls.refuse()

    def __getitem__(cls, parameters: Any) -> Refused:
        """The class itself: programs may name type parameters of what they extend."""
        return cls

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        cls.refuse()


def refused_name(module: str, name: str, names: Collection[str], construct: str, hint: str) -> Any:
    """The class behind a name of a module that has nothing but refused ones, for its ``__getattr__``.

    Raises:
        AttributeError: PyFlink's module has no such name either.
    """
    if name not in names:
        raise AttributeError(f"module '{module}' has no attribute '{name}'")
    return Refused(name, (), {"__module__": module}, construct=construct, hint=hint)
