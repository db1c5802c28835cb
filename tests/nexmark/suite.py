"""The Nexmark queries beside the checkout (``../shared/nexmark``) and the judge of their recorded answers."""

from __future__ import annotations

import importlib.util
import json
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

SUITE = Path(__file__).resolve().parents[3] / "shared" / "nexmark"


def queries() -> list[str]:
    """``q0`` to ``q23``."""
    return sorted((path.stem for path in SUITE.glob("golden/q*.json")), key=lambda name: int(name[1:]))


@cache
def judge() -> ModuleType:
    """The suite's own reading of answers."""
    spec = importlib.util.spec_from_file_location("nexmark_check", SUITE / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def golden(query: str) -> dict[str, Any]:
    """What Flink answers."""
    found: dict[str, Any] = json.loads((SUITE / "golden" / f"{query}.json").read_text())
    return found


def generate(folder: Path, format_: str, files: int) -> None:
    """Put the events of the recorded answers into a folder."""
    command = [sys.executable, str(SUITE / "generate.py"), *shlex.split(golden("q0")["generate"])]
    options = ["--out", str(folder), "--format", format_, "--files", str(files)]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)


def script(query: str, data: Path, out: Path, format_: str) -> str:
    """A query over files of events, with ``print`` as its sink."""
    text = (SUITE / "ddl.sql").read_text() + (SUITE / "queries" / f"{query}.sql").read_text()
    places = {"DATA": data, "FORMAT": judge().FORMATS[format_], "OUT": out, "SINK": "'connector' = 'print'"}
    for place, value in places.items():
        text = text.replace(f"${{{place}}}", str(value))
    return text


def assert_answer(query: str, output: str, out: Path) -> None:
    """What a query printed, or wrote, is Flink's answer."""
    wanted = golden(query)
    if query == "q12":  # depends on the clock
        return
    if query == "q10":
        rows = list(judge().csv_rows(out / "q10", wanted["columns"]))
    else:
        rows = judge().materialise(output.splitlines(), query)
    assert len(rows) == wanted["rows"]
    assert judge().digest(rows) == wanted["sha256"]
