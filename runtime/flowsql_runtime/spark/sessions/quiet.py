"""Calls of pyspark without its warnings."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """What pyspark thinks of the versions around it is no part of anybody's answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
