"""Typical slips, and the whole report for each: ``corpus/typos.txt``, written anew by ``pytest --update``."""

from __future__ import annotations

import pytest
from corpus_files import HERE

from flowsql_core.errors import ParseError
from flowsql_core.span import Source
from flowsql_grammar import parse_script

GOLDEN = HERE / "corpus" / "typos.txt"
SEPARATOR = "-" * 40


def report(text: str) -> str:
    with pytest.raises(ParseError) as caught:
        parse_script(Source(text, "job.sql"))
    return caught.value.render()


def test_reports_of_typos_are_the_reviewed_ones(request: pytest.FixtureRequest) -> None:
    blocks = GOLDEN.read_text("utf-8").strip().split(f"\n{SEPARATOR}\n")
    texts = [block.split("\n", 1)[0] for block in blocks]
    fresh = [f"{text}\n{report(text)}" for text in texts]
    if request.config.getoption("--update"):
        GOLDEN.write_text(f"\n{SEPARATOR}\n".join(fresh) + "\n", "utf-8")
        return
    assert len(fresh) >= 60
    assert fresh == blocks
