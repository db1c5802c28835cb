from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.shell.terminal import Terminal, shell

#: Starts the shell with some words, in a folder of its own, and waits for its prompt.
Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def started(*words: str, terminal: str = "emulator", **environment: str) -> Terminal:
            made = stack.enter_context(shell(tmp_path, *words, terminal=terminal, **environment))
            made.wait_for("Flow SQL>")
            return made

        yield started
