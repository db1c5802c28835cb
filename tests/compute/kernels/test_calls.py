"""What a kernel takes, what it refuses, and that a refusal is an exception and not a crash."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from flowsql_compute.compiler import declare as lazy
from flowsql_compute.compiler.emit import emit
from flowsql_compute.compiler.fingerprint import of_kernel
from flowsql_compute.compiler.signature import ELEMENTS, Parameter, parse


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLOWSQL_KERNEL_CACHE", str(tmp_path_factory.mktemp("kernels")))
        yield


@lazy.device
def _twice(x):  # type: ignore[no-untyped-def]
    return x + x


@lazy.kernel("int64(int64[::1], int32[:,::1], boolean, float64)")
def total(flat, table, negate, factor):  # type: ignore[no-untyped-def]
    sum_ = 0
    for i in range(len(flat)):
        sum_ += _twice(flat[i])
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            sum_ += table[i, j] * (i + 1)
    return np.int64((-sum_ if negate else sum_) * factor)


@lazy.kernel("void(int64[::1], uint8)")
def fill(out, value):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        out[i] = value


@lazy.device(inline=True)
def _thrice(x):  # type: ignore[no-untyped-def]
    return 3 * x


tripled = total.variant("tripled", _twice=_thrice)
FLAT = np.arange(4, dtype=np.int64)
TABLE = np.arange(6, dtype=np.int32).reshape(2, 3)


def test_arrays_scalars_and_device_functions() -> None:
    assert total(FLAT, TABLE, False, 1.0) == 12 + 3 + 2 * 12
    assert total(FLAT, TABLE, True, 2.0) == -78
    out = np.zeros(3, np.int64)
    assert fill(out, 200) is None
    assert out.tolist() == [200] * 3
    assert total.__doc__ is None
    assert total.__name__ == "total"


def test_a_variant_has_other_device_functions() -> None:
    assert tripled(FLAT, TABLE, False, 1.0) == 18 + 3 + 2 * 12
    assert total(FLAT, TABLE, False, 1.0) == 12 + 3 + 2 * 12
    assert of_kernel(tripled) != of_kernel(total)


def test_what_is_nearly_an_argument_is_taken() -> None:
    assert total(FLAT, TABLE, np.bool_(True), np.float32(2)) == -78
    assert total(FLAT, TABLE, 2, 1) == -39
    assert total(FLAT.view(np.recarray), TABLE, np.int8(0), 1.0) == 39
    out = np.zeros(1, np.int64)
    fill(out, np.int64(7))
    assert out[0] == 7
    readonly = FLAT.copy()
    readonly.flags.writeable = False
    assert total(readonly, TABLE, False, 1.0) == 39


def test_empty_arrays() -> None:
    assert total(np.empty(0, np.int64), np.empty((0, 3), np.int32), False, 1.0) == 0
    assert total(np.empty(0, np.int64), np.empty((3, 0), np.int32), False, 1.0) == 0


def _unaligned() -> np.ndarray[Any, Any]:
    return np.frombuffer(bytes(33), np.uint8)[1:].view(np.int64)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: (FLAT.astype(np.int32), TABLE, False, 1.0),
            "flat is an array of int64 with 1 dim.* not of int32",
        ),
        (lambda: (FLAT.astype(np.float64), TABLE, False, 1.0), "not of float64"),
        (lambda: (FLAT.astype(np.uint64), TABLE, False, 1.0), "not of uint64"),
        (lambda: (FLAT.astype("M8[us]"), TABLE, False, 1.0), "not of datetime64"),
        (lambda: (FLAT.astype(">i8"), TABLE, False, 1.0), "not of >i8"),
        (lambda: (FLAT.astype(object), TABLE, False, 1.0), "not of object"),
        (lambda: (FLAT.reshape(2, 2), TABLE, False, 1.0), "not of int64 with 2"),
        (lambda: (np.int64(3), TABLE, False, 1.0), "flat is an array of int64, not int64"),
        (lambda: ([1, 2], TABLE, False, 1.0), "flat is an array of int64, not list"),
        (lambda: (None, TABLE, False, 1.0), "not NoneType"),
        (lambda: (FLAT[::2], TABLE, False, 1.0), "flat is not contiguous"),
        (lambda: (_unaligned(), TABLE, False, 1.0), "flat is not contiguous and aligned"),
        (lambda: (FLAT, TABLE.T, False, 1.0), "table is not contiguous"),
        (lambda: (FLAT, TABLE, False, "1"), "factor is float64, not '1'"),
        (lambda: (FLAT, TABLE, False, None), "factor is float64, not None"),
        (lambda: (FLAT, TABLE, False), "takes 4 arguments, not 3"),
        (lambda: (FLAT, TABLE, False, 1.0, 1.0), "takes 4 arguments, not 5"),
        (lambda: (), "takes 4 arguments, not 0"),
    ],
)
def test_what_the_signature_does_not_say_is_a_type_error(make: Callable[[], tuple[Any, ...]], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        total(*make())


def test_scalars_are_not_rounded_or_wrapped() -> None:
    with pytest.raises(TypeError, match=r"value is uint8, not 1\.5"):
        fill(np.zeros(1, np.int64), 1.5)
    with pytest.raises(OverflowError):
        fill(np.zeros(1, np.int64), 2**70)


def test_references_are_kept_right() -> None:
    import sys

    out = np.zeros(2, np.int64)
    fill(out, 1)
    before = sys.getrefcount(out)
    for _ in range(1000):
        fill(out, 1)
        with pytest.raises(TypeError):
            fill(out, None)
    assert sys.getrefcount(out) - before < 10


def test_the_interpreter_lock_is_not_held() -> None:
    @lazy.kernel("int64(int64[::1], int64[::1])")
    def wait(flag, spins):  # type: ignore[no-untyped-def]
        while flag[0] == 0 and spins[0] < 10_000_000_000:
            spins[0] += 1
        return flag[0]

    flag, spins = np.zeros(1, np.int64), np.zeros(1, np.int64)
    wait(np.ones(1, np.int64), spins)
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(wait(flag, spins)))
    thread.start()
    while spins[0] == 0:
        pass
    flag[0] = 5
    thread.join(60)
    assert results == [5]


def test_a_kernel_that_raises_says_so() -> None:
    @lazy.kernel("void(int64[::1])")
    def broken(out):  # type: ignore[no-untyped-def]
        if out[0] == 0:
            raise ValueError("never")
        out[0] = 2

    with pytest.raises(RuntimeError, match="kernel broken failed"):
        broken(np.zeros(1, np.int64))
    fine = np.ones(1, np.int64)
    broken(fine)
    assert fine[0] == 2


def test_a_kernel_that_allocates_is_not_compiled() -> None:
    @lazy.kernel("int64(int64[::1])")
    def allocating(values):  # type: ignore[no-untyped-def]
        copy = np.empty(len(values), np.int64)
        copy[0] = values[0]
        return copy[0]

    with pytest.raises(Exception, match="empty"):
        emit(allocating)


@pytest.mark.parametrize("element", list(ELEMENTS))
def test_elements_are_those_of_numpy(element: str) -> None:
    letter, size = ELEMENTS[element]
    dtype = np.dtype("bool" if element == "boolean" else element)
    assert (dtype.kind, dtype.itemsize) == (letter, size)


def test_signatures() -> None:
    read = parse("int64(int32[::1], uint8[:, ::1],boolean)")
    assert read.result == "int64"
    assert read.parameters == (Parameter("int32", 1), Parameter("uint8", 2), Parameter("boolean", 0))
    for wrong in ("float64(int64)", "void(int64[:])", "void(int64[:,:,::1])", "void(string)", "void(int64", "void"):
        with pytest.raises(ValueError, match="kernel"):
            parse(wrong)
