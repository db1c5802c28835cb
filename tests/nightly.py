"""Parameters of long tests: some run always, the others by night (`make chaos`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def by_night(values: Iterable[Any], always: Callable[[Any], bool]) -> list[Any]:
    """All values as parameters, with the mark ``nightly`` but for those that always run."""
    return [pytest.param(value, marks=() if always(value) else pytest.mark.nightly) for value in values]
