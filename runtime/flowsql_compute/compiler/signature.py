"""Signatures of kernels: what Numba compiles and what a call is checked against."""

from __future__ import annotations

import re

from flowsql_core.record import record

#: Element name -> kind and bytes of the NumPy type; ``boolean`` is Numba's name of ``bool``.
ELEMENTS = {
    "boolean": ("b", 1),
    **{f"int{8 * size}": ("i", size) for size in (1, 2, 4, 8)},
    **{f"uint{8 * size}": ("u", size) for size in (1, 2, 4, 8)},
    "float32": ("f", 4),
    "float64": ("f", 8),
}
_PARAMETER = re.compile(r"\s*(\w+)(\[(?::,\s*)?::1\])?\s*(?:,|$)")


@record
class Parameter:
    """A contiguous array of ``ndim`` dimensions, or a scalar where ``ndim`` is 0."""

    element: str
    ndim: int


@record
class Signature:
    """Parameters and result (``void`` or ``int64``) of a kernel."""

    text: str
    result: str
    parameters: tuple[Parameter, ...]


def parse(text: str) -> Signature:
    """Read ``int64(int32[::1], uint8[:,::1], boolean)``.

    Raises:
        ValueError: for types that kernels do not take.
    """
    result, _, rest = text.partition("(")
    inside = rest.removesuffix(")")
    if result not in ("void", "int64") or inside == rest:
        raise ValueError(f"a kernel returns void or int64: {text}")
    parameters: list[Parameter] = []
    at = 0
    while at < len(inside):
        found = _PARAMETER.match(inside, at)
        if found is None or found[1] not in ELEMENTS:
            raise ValueError(f"kernels take scalars and contiguous arrays of one or two dimensions: {text}")
        parameters.append(Parameter(found[1], {None: 0, "[::1]": 1}.get(found[2], 2)))
        at = found.end()
    return Signature(text, result, tuple(parameters))
