"""Whoever reads the output may go away: the command ends without a word."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "words", [("job", "list"), ("lint", "--rules"), ("-c", "SELECT * FROM (VALUES 1, 2) AS t (n)")]
)
def test_a_reader_that_goes_away(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "flowsql.cli", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (1, b"")
