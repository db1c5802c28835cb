"""A real kernel of a notebook, whose cells the tests run."""

from __future__ import annotations

import queue
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Any

import pytest

#: Seconds that a cell may run.
LIMIT_S = 60.0

NEW_ENVIRONMENT = """
env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
env.execute_sql('''CREATE TABLE clicks (n INT) WITH (
    'connector' = 'datagen', 'rows-per-second' = '100',
    'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '1000000')''')
"""


@dataclass
class Output:
    """One output of a cell: ``execute_result``, ``display_data``, ``update_display_data``, ``stream`` or ``error``."""

    kind: str
    html: str
    text: str

    @property
    def cells(self) -> list[list[str]]:
        """The texts of the table in it, a list a row, without its head."""
        rows = re.findall(r"<tr>(.*?)</tr>", self.html.partition("<tbody>")[2], re.DOTALL)
        return [[unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in rows]

    @property
    def head(self) -> list[str]:
        """The names of the columns."""
        return [unescape(name) for name in re.findall(r"<th [^>]*>(.*?)<br>", self.html)]

    @property
    def line(self) -> str:
        """The text below the table, or all of it where there is no table."""
        below = re.sub(r"<table>.*</table>", "", self.html, flags=re.DOTALL)
        return unescape(re.sub(r"<[^>]+>", "", below))


class Notebook:
    """Cells run one after another in one kernel."""

    def __init__(self, manager: Any, client: Any) -> None:
        self._manager = manager
        self._client = client

    def run(self, code: str, interrupted_after: int | None = None) -> list[Output]:
        """The outputs of a cell; ``interrupted_after``: so many of them it is interrupted, as by the stop button."""
        asked = self._client.execute(code)
        found: list[Output] = []
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            try:
                message = self._client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            content = message["content"]
            if message["parent_header"].get("msg_id") != asked:
                continue
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                return found
            if message["msg_type"] in ("status", "execute_input"):
                continue
            data = content.get("data", {})
            text = content.get("text") or data.get("text/plain") or "\n".join(content.get("traceback", ()))
            found.append(Output(message["msg_type"], data.get("text/html", ""), re.sub(r"\x1b\[[\d;]*m", "", text)))
            if len(found) == interrupted_after:
                self._manager.interrupt_kernel()
        raise AssertionError(f"the cell does not end: {code}\n{found}")


@pytest.fixture(scope="module")
def kernel() -> Iterator[Notebook]:
    pytest.importorskip("ipykernel", reason="notebooks need the kernel of Jupyter")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    notebook = Notebook(manager, client)
    notebook.run("from flowsql.table import EnvironmentSettings, TableEnvironment")
    yield notebook
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def notebook(kernel: Notebook) -> Notebook:
    """The kernel with a new environment ``env`` and the endless table ``clicks``."""
    kernel.run(NEW_ENVIRONMENT)
    return kernel
