"""Python functions as bytes for another process: what cloudpickle makes of them, with the files that they came from.

From 3.1.3 on cloudpickle names no file in the code that it writes, and the frames of a failing function could not be
shown with their lines.
"""

from __future__ import annotations

import io
from collections import ChainMap
from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any, ClassVar


def dumps(thing: object) -> bytes:
    """The object as bytes that ``pickle.loads`` reads; raises what cloudpickle raises."""
    with io.BytesIO() as out:
        _pickler()(out).dump(thing)
        return out.getvalue()


@cache
def _pickler() -> Any:
    import cloudpickle

    reduce_code = cloudpickle.Pickler.dispatch_table[CodeType]

    def reduce(code: CodeType) -> tuple[Any, ...]:
        make, arguments = reduce_code(code)
        return _with_file, (code.co_filename, make, arguments)

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        # Picklers look for it when they are made.
        dispatch_table: ClassVar[Any] = ChainMap({CodeType: reduce}, cloudpickle.Pickler.dispatch_table)

    return Pickler


def _with_file(name: str, make: Callable[..., CodeType], arguments: tuple[Any, ...]) -> CodeType:
    return make(*arguments).replace(co_filename=name)
