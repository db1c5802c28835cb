"""What Flink 2.3's parser said to 665 odd statements, and FlowSQL's says the same.

``corpus/flink_verdicts.txt``: a verdict, then the statement. ``fails later`` marks what Flink's parser takes and Flink
can never run (functions, units and clauses that it does not know): FlowSQL refuses it at once.
"""

from __future__ import annotations

import pytest
from corpus_files import HERE

from flowsql_core.errors import ParseError
from flowsql_grammar import parse_statement, print_sql

LINES = (HERE / "corpus" / "flink_verdicts.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("verdict", ["accepts", "refuses", "fails later"])
def test_verdicts_are_those_of_flink(verdict: str) -> None:
    texts = [line[12:] for line in LINES if line[:12].rstrip() == verdict]
    assert len(texts) > 30
    wrong = [text for text in texts if accepted(text) != (verdict == "accepts")]
    assert not wrong


def accepted(text: str) -> bool:
    try:
        tree = parse_statement(text)
    except ParseError:
        return False
    assert parse_statement(print_sql(tree)) == tree, text
    return True
