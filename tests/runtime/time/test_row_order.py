"""``row_order`` beside ``np.lexsort``."""

from __future__ import annotations

import numpy as np
import pytest

from flowsql_runtime.window.row_order import row_order


@pytest.mark.parametrize("spread", [0, 1, 30, 40_000, 2**31 - 1, 2**62])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.bool_])
@pytest.mark.parametrize("rows", [0, 1, 255, 256, 1000])
def test_rows_stand_as_lexsort_has_them(spread: int, dtype: type[np.generic], rows: int) -> None:
    generator = np.random.default_rng(spread + rows)
    most = min(spread, 1 if dtype is np.bool_ else int(np.iinfo(dtype).max))
    first = generator.integers(0, most, rows, endpoint=True).astype(dtype)
    second = generator.integers(-(spread // 2), spread // 2, rows, endpoint=True)
    third = generator.integers(-3, 3, rows)
    if rows and spread == 2**62:
        second[0], second[-1] = 2**63 - 1, -(2**63)
    for keys in ((first,), (first, second), (first, second, third), (third, first)):
        found = row_order(keys)
        assert found.dtype == np.int64
        assert found.tolist() == np.lexsort(keys).tolist()
