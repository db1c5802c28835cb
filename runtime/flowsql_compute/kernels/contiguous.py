"""Arrays as kernels take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def for_kernel(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, or a copy of it where it is not contiguous and aligned; kernels take read-only ones too."""
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")
