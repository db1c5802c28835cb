"""The unit and the entry point of ``docs/howto/keep_running.md``, as a supervisor runs them."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from flowsql.cli.arguments.script import parse

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "keep_running.md").read_text(encoding="utf-8")


def block(kind: str, head: str) -> str:
    """A code block of the page by its language and its first words."""
    found = [text for text in re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL) if text.startswith(head)]
    assert len(found) == 1
    return str(found[0])


def test_the_unit_is_one(tmp_path: Path) -> None:
    text = block("ini", "# /etc/systemd/system/")
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    service = unit["Service"]
    words = shlex.split(service["ExecStart"])
    assert words[:2] == ["/usr/bin/env", "flowsql"]
    invocation = parse(words[2:])
    assert invocation.resume is not None
    assert invocation.resume.endswith("${STATE_DIRECTORY}")
    assert service["SuccessExitStatus"] == "143"
    assert service["Restart"] == "on-failure"
    analyze = shutil.which("systemd-analyze")
    if analyze is not None:
        path = tmp_path / "flowsql-orders.service"
        path.write_text(text)
        subprocess.run([analyze, "verify", "--man=no", str(path)], check=True)


@pytest.fixture
def container(tmp_path: Path) -> list[str]:
    """The entry point, with a ``flowsql`` on the path."""
    command = tmp_path / "bin" / "flowsql"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m flowsql.cli "$@"\n')
    command.chmod(0o755)
    entry = tmp_path / "entrypoint.sh"
    entry.write_text(block("sh", "#!/bin/sh"))
    return ["/bin/sh", str(entry)]


def test_the_entry_point_is_killed_terminated_and_started_again(container: list[str], tmp_path: Path) -> None:
    script = block("sql", "-- orders.sql").replace("'10 s'", "'50 ms'").replace("'1 s'", "'20 ms'")
    rolling = "'sink.rolling-policy.inactivity-interval' = '100 ms', 'sink.rolling-policy.check-interval' = '50 ms'"
    script = script.replace("'sink.rolling-policy.rollover-interval' = '1 min'", rolling)
    (tmp_path / "orders.sql").write_text(script)
    (tmp_path / "incoming").mkdir()
    environment = {
        **os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path),
        "JOB": str(tmp_path / "orders.sql"), "STATE": str(tmp_path / "state"),
    }  # fmt: skip

    def visible() -> Counter[str]:
        found: Counter[str] = Counter()
        for path in (tmp_path / "large").glob("[!.]*"):
            found.update(path.read_text().split())
        return found

    wanted: Counter[str] = Counter()
    for number, ending in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)):
        rows = [f"{number * 100 + row},{100 + row}" for row in range(20)]
        hidden = tmp_path / "incoming" / f".{number}"
        hidden.write_text("".join(f"{row}\n" for row in rows))
        hidden.rename(tmp_path / "incoming" / f"{number}.csv")
        wanted.update(rows[1:])
        process = subprocess.Popen(
            container, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        until = time.monotonic() + 60
        while not visible() >= wanted:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until, visible()
            time.sleep(0.02)
        # The shell has become FlowSQL: it gets the signal itself.
        process.send_signal(ending)
        _, told = process.communicate(timeout=60)
        assert process.returncode == (143 if ending is signal.SIGTERM else -signal.SIGKILL)
        assert (" goes on from " in told) == bool(number)
    assert visible() == wanted
