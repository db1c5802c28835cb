"""The conversations in ``docs/shell.md`` are typed, and the screen is what stands there."""

from __future__ import annotations

import re

import pytest

from tests.cli.shell.conftest import Start
from tests.cli.shell.terminal import ROOT

PAGE = (ROOT / "docs" / "shell.md").read_text()
CONVERSATIONS = re.findall(r"```text\n\$ flowsql(.*?)\n(.*?)\n```", PAGE, re.DOTALL)
PROMPTS = ("Flow SQL> ", "        > ")


@pytest.mark.parametrize(("words", "shown"), CONVERSATIONS)
def test_a_conversation_is_as_it_is_told(start: Start, words: str, shown: str) -> None:
    shell = start(*words.split())
    for line in shown.splitlines():
        if line.startswith(PROMPTS):
            shell.wait_for(lambda screen: screen.rstrip().endswith(("Flow SQL>", "        >")))
            shell.enter(line[len(PROMPTS[0]) :])
    shell.wait_for(lambda screen: _timeless(screen) == _timeless(shown))


def _timeless(screen: str) -> str:
    return re.sub(r"\d+\.\d\d seconds", "N seconds", screen).strip()
