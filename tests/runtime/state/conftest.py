"""Each conformance test runs for every backend."""

from __future__ import annotations

import pytest

from tests.runtime.state.backends import ALL_GROUPS, BACKENDS, Make


@pytest.fixture(params=sorted(BACKENDS))
def make(request: pytest.FixtureRequest) -> Make:
    """Makes a backend; of all key groups unless told."""
    factory = BACKENDS[request.param]
    return lambda groups=ALL_GROUPS: factory(groups)
