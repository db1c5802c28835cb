"""TIME values, which go from -838:59:59 to 838:59:59: as texts, and out of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import make_array
from flowsql_core.arrow import compute as pc

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def time_texts(micros: Int64s, valid: Bools, precision: int) -> Any:
    """As MySQL spells them, e.g. ``-12:34:56.500``.

    Args:
        precision: digits behind the second.
    """
    size = np.abs(micros)
    seconds = size // 1_000_000
    parts = [
        pc.if_else(make_array(micros < 0, valid, pa.bool_()), "-", ""),
        _digits(seconds // 3600, 2),
        pa.scalar(":"),
        _digits(seconds // 60 % 60, 2),
        pa.scalar(":"),
        _digits(seconds % 60, 2),
    ]
    if precision:
        parts += [pa.scalar("."), _digits(size % 1_000_000 // 10 ** (6 - precision), precision)]
    return pc.binary_join_element_wise(*parts, "")


def _digits(numbers: Int64s, least: int) -> Any:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), least, "0")


def durations_of_texts(texts: Any) -> Any:
    """Texts of TIME values as durations in microseconds."""
    found = pc.extract_regex(texts, r"^(?P<sign>-?)(?P<h>\d+):(?P<m>\d+):(?P<s>\d+)(?:\.(?P<f>\d+))?$")
    part = {name: pc.struct_field(found, name) for name in ("sign", "h", "m", "s", "f")}
    number = {name: part[name].cast(pa.int64()) for name in ("h", "m", "s")}
    fraction = pc.utf8_rpad(pc.fill_null(part["f"], ""), 6, "0").cast(pa.int64())
    seconds = pc.add(pc.multiply(pc.add(pc.multiply(number["h"], 60), number["m"]), 60), number["s"])
    micros = pc.add(pc.multiply(seconds, 1_000_000), fraction)
    return pc.if_else(pc.equal(part["sign"], "-"), pc.negate(micros), micros).cast(pa.duration("us"))
