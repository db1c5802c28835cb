"""What a value passes where a type was declared for it: checks, ranges, rounding. Used by ``typeinfo``.

Each function gives a converter: a callable of one value that raises TypeError for a value of another kind and
ValueError for one that does not fit.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

Converter = Callable[[Any], Any]

_FOUR_BYTES: Final = struct.Struct("<f")


def refused(value: Any, type_: object) -> TypeError:
    """The error of a value of another kind."""
    return TypeError(f"{value!r} of type {type(value).__name__} is not a value of {type_!r}")


def instance_of(type_: object, wanted: type) -> Converter:
    """Objects of one class, as they are."""

    def convert(value: Any) -> Any:
        if isinstance(value, wanted):
            return value
        raise refused(value, type_)

    return convert


def integer(type_: object, bits: int | None) -> Converter:
    """Integers of so many bits; None: of any size."""
    low, high = (0, 0) if bits is None else (-(1 << bits - 1), (1 << bits - 1) - 1)

    def convert(value: Any) -> int:
        if type(value) is not int:
            try:
                value = operator.index(value)
            except TypeError:
                raise refused(value, type_) from None
        if bits is not None and not low <= value <= high:
            raise ValueError(f"{value} does not fit into {type_!r} of {bits} bits")
        number: int = value
        return number

    return convert


def four_byte_float(type_: object) -> Converter:
    """Numbers, rounded to four bytes."""
    pack, unpack = _FOUR_BYTES.pack, _FOUR_BYTES.unpack

    def convert(value: Any) -> float:
        try:
            number: float = unpack(pack(value))[0]
        except struct.error:
            raise refused(value, type_) from None
        except OverflowError:
            raise ValueError(f"{value} does not fit into {type_!r}") from None
        return number

    return convert


def eight_byte_float(type_: object) -> Converter:
    """Numbers as ``float``."""

    def convert(value: Any) -> float:
        if type(value) is float:
            return value
        if isinstance(value, str | bytes | bytearray):
            raise refused(value, type_)
        try:
            return float(value)
        except TypeError:
            raise refused(value, type_) from None

    return convert


def list_of(type_: object, element: Converter | None) -> Converter:
    """Anything that can be walked through, as a list of converted elements."""

    def convert(value: Any) -> list[Any]:
        if isinstance(value, str | bytes | dict) or not hasattr(value, "__iter__"):
            raise refused(value, type_)
        return list(value) if element is None else [element(item) for item in value]

    return convert


def fields_of(
    checks: Sequence[str | None],
    converters: Sequence[Converter | None],
    slow: Converter,
    make: Callable[[tuple[Any, ...]], Any] | None = None,
) -> Converter:
    """A converter of tuples that is compiled for their fields: most values pass as they are.

    Args:
        checks: for each field an expression over ``v`` that is true for values that need no conversion; None where all
            values are converted.
        converters: for each field what converts values that are not None; None for what passes in any case.
        slow: converts what is no tuple of as many fields, or has a field that fails its check.
        make: makes the result of the tuple of converted fields; None for the tuple itself.
    """
    names = [f"v{index}" for index in range(len(checks))]
    known: dict[str, Any] = {"slow": slow, "make": make}
    conditions, results = [], []
    for index, (name, check, convert) in enumerate(zip(names, checks, converters, strict=True)):
        if convert is None:
            results.append(name)
        elif check is not None:
            conditions.append(f"({name} is None or {check.replace('{v}', name)})")
            results.append(name)
        else:
            known[f"c{index}"] = convert
            results.append(f"None if {name} is None else c{index}({name})")
    made = "value" if results == names else f"({''.join(f'{result}, ' for result in results)})"
    lines = [
        "def convert(value):",
        f"    if type(value) is tuple and len(value) == {len(names)}:",
        *([f"        {''.join(f'{name}, ' for name in names)}= value"] if names else []),
        f"        if {' and '.join(conditions) or 'True'}:",
        f"            return {made if make is None else f'make({made})'}",
        "    return slow(value)",
    ]
    exec("\n".join(lines), known)
    compiled: Converter = known["convert"]
    return compiled
