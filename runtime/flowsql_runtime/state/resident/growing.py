"""Arrays that grow in place: large ones are memory mappings, which the system extends without copying."""

from __future__ import annotations

import contextlib
import mmap
import threading
from typing import Any, Final

import numpy as np
import numpy.typing as npt

#: Bytes from which an array is a mapping of its own.
_MAPPED_FROM: Final = 4 << 20
_HUGE_PAGE: Final = 2 << 20
#: Bytes from which an array of words asks for huge pages. Where rows are read here and there in much memory, they save
#: translations of addresses; but a page that the host of a virtual machine has taken back costs five times as much to
#: touch first as the small ones in its place do.
_HUGE_FROM: Final = 64 << 20
#: Held while a mapping moves, and by whoever reads an array of another thread, piece by piece.
MOVING: Final = threading.Lock()


def grow(owner: object, name: str, needed: int) -> None:
    """Give array attribute ``name`` of ``owner`` room for ``needed`` rows and some more; new rows are zero.

    Views of the array that someone still holds stay valid: then it is copied.
    """
    with MOVING:
        _grow(owner, name, needed)


def _grow(owner: object, name: str, needed: int) -> None:
    array: npt.NDArray[Any] = getattr(owner, name)
    row = array.dtype.itemsize
    for width in array.shape[1:]:
        row *= width
    if not row:
        # Rows without columns: how many there are is all that counts.
        setattr(owner, name, np.zeros((max(needed, 2 * len(array)), *array.shape[1:]), array.dtype))
        return
    wanted = max(needed, 2 * len(array)) * row
    if wanted < _MAPPED_FROM:
        wider = np.zeros((wanted // row, *array.shape[1:]), array.dtype)
        wider[: len(array)] = array
        setattr(owner, name, wider)
        return
    wanted = max(needed, len(array) * 5 // 4) * row
    wanted += -wanted % _HUGE_PAGE
    length, shape, dtype = len(array), array.shape[1:], array.dtype
    mapping = _mapping_of(array)
    if isinstance(mapping, mmap.mmap):
        # The mapping counts the arrays that look at it, and refuses to move while there is one.
        delattr(owner, name)
        del array
        try:
            mapping.resize(wanted)
        except (BufferError, OSError, SystemError):
            array = _rows(mapping, shape, dtype)
            setattr(owner, name, array)
        else:
            _ask_for_huge_pages(mapping, dtype)
            setattr(owner, name, _rows(mapping, shape, dtype))
            return
    wider = _rows(_mapped(wanted, dtype), shape, dtype)
    wider[:length] = array[:length]
    setattr(owner, name, wider)


def with_room(size: int) -> npt.NDArray[np.uint8]:
    """Bytes that :func:`grow` extends without copying where they are many; pages that nobody touches take no memory."""
    dtype = np.dtype(np.uint8)
    return np.empty(size, dtype) if size < _MAPPED_FROM else _rows(_mapped(size, dtype), (), dtype)


def _mapping_of(array: npt.NDArray[Any]) -> Any:
    """The mapping that an array of :func:`_rows` looks at; None for other arrays."""
    view = getattr(array.base, "base", None)
    return view.obj if isinstance(view, memoryview) else None


def _mapped(size: int, dtype: np.dtype[Any]) -> mmap.mmap:
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return mmap.mmap(-1, size)
    mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    _ask_for_huge_pages(mapping, dtype)
    return mapping


def _ask_for_huge_pages(mapping: mmap.mmap, dtype: np.dtype[Any]) -> None:
    """For a large array of words. Bytes are read value by value, each from one or two pages."""
    if dtype.itemsize == 1 or len(mapping) < _HUGE_FROM or not hasattr(mmap, "MADV_HUGEPAGE"):
        return
    with contextlib.suppress(OSError):  # a kernel without huge pages
        mapping.madvise(mmap.MADV_HUGEPAGE)


def _rows(mapping: mmap.mmap, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    row = dtype.itemsize
    for width in shape:
        row *= width
    length = len(mapping) // row
    flat: npt.NDArray[Any] = np.frombuffer(mapping, dtype, count=length * row // dtype.itemsize)
    return flat.reshape(length, *shape)
