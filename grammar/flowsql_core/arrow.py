"""``pyarrow.compute`` without its import: ``from flowsql_core.arrow import compute as pc``.

The module takes 0.1 s to build documented wrappers of all 286 functions; a short query calls ten. Here a function is
wrapped when it is first named, over the same registry and options, and called as ``pyarrow.compute`` says. What is not
a function of the registry or one of the few written here comes from ``pyarrow.compute`` itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Python keywords are other names there.
_RENAMED = {"and_": "and", "or_": "or"}


class _Compute:
    """Stands for the module; an attribute is made when it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        value = _OWN[name] if name in _OWN else _find(name)
        # Next time it is found without coming here.
        setattr(self, name, value)
        return value


def _find(name: str) -> Any:
    from pyarrow import _compute

    if name not in _WRITTEN_IN_PYTHON:
        if name[:1].isupper() and hasattr(_compute, name):
            return getattr(_compute, name)
        try:
            function = _compute.get_function(_RENAMED.get(name, name))
        except KeyError:
            pass
        else:
            options_class = function._doc.options_class
            return _wrapped(name, function, getattr(_compute, options_class) if options_class else None)
    # The one import of it: nothing else has the name.
    from pyarrow import compute as whole  # noqa: TID251

    return getattr(whole, name)


def _wrapped(name: str, function: Any, options_class: Any) -> Callable[..., Any]:
    """The function, with its options as one object or as further positional or named arguments."""
    run, arity = function.call, function.arity

    def plain(*args: Any) -> Any:
        if arity is not Ellipsis and len(args) != arity:
            raise TypeError(f"{name} takes {arity} arguments, not {len(args)}")
        return run(args)

    def with_options(*args: Any, options: Any = None, **named: Any) -> Any:
        further: tuple[Any, ...] = ()
        if arity is not Ellipsis:
            if len(args) < arity:
                raise TypeError(f"{name} takes {arity} arguments, not {len(args)}")
            args, further = args[:arity], args[arity:]
        if further or named:
            if options is not None:
                raise TypeError(f"{name} takes options or their fields, not both")
            options = options_class(*further, **named)
        return run(args, options)

    return plain if options_class is None else with_options


def _cast(array: Any, target_type: Any = None, safe: bool | None = None, options: Any = None) -> Any:
    from pyarrow import _compute, lib

    if options is None:
        make = _compute.CastOptions.unsafe if safe is False else _compute.CastOptions.safe
        options = make(lib.ensure_type(target_type))
    return _compute.call_function("cast", [array], options)


def _take(data: Any, indices: Any, *, boundscheck: bool = True) -> Any:
    from pyarrow import _compute

    return _compute.call_function("take", [data, indices], _compute.TakeOptions(boundscheck=boundscheck))


def _fill_null(values: Any, fill_value: Any) -> Any:
    from pyarrow import _compute, lib

    if not isinstance(fill_value, lib.Scalar | lib.Array | lib.ChunkedArray):
        fill_value = lib.scalar(fill_value, type=values.type)
    elif values.type != fill_value.type:
        fill_value = lib.scalar(fill_value.as_py(), type=values.type)
    return _compute.call_function("coalesce", [values, fill_value])


_OWN: dict[str, Callable[..., Any]] = {"cast": _cast, "take": _take, "fill_null": _fill_null}
#: Functions of the registry whose wrapper in ``pyarrow.compute`` does more than call them.
_WRITTEN_IN_PYTHON = frozenset({"index", "random"})

compute: Any = _Compute()
