"""Watermarks leave by the clock: where a test does not move the clock itself, none leaves before the input ends."""

from __future__ import annotations

import pytest

from flowsql.configuration import CONFIG_DIRECTORY_VARIABLE, CONFIG_FILE


@pytest.fixture(scope="session")
def quiet_configuration(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a configuration whose watermark interval no test outlasts."""
    folder = tmp_path_factory.mktemp("configuration")
    (folder / CONFIG_FILE).write_text("pipeline.auto-watermark-interval: 1 h\n")
    return str(folder)


@pytest.fixture(autouse=True)
def _no_tick_on_a_busy_machine(
    request: pytest.FixtureRequest, quiet_configuration: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if request.node.get_closest_marker("ticks") is None:
        monkeypatch.setenv(CONFIG_DIRECTORY_VARIABLE, quiet_configuration)
