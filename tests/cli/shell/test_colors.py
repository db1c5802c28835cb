"""Classes of tokens, and Flink's nine schemes."""

from __future__ import annotations

import pytest
from prompt_toolkit.document import Document

from flowsql.cli.options import ColorSchema
from flowsql.cli.shell.colors import SCHEMES, SqlLexer, classified, style_of

TEXT = """-- first; a comment
SELECT /*+ STATE_TTL('t' = '1 h') */ `a b`, n + 1.5, 'it''s' /* and
another */ FROM t WHERE s = 'open"""


def test_tokens_have_classes() -> None:
    found = [(label, TEXT[start:end]) for label, start, end in classified(TEXT) if label not in ("name", "operator")]
    assert found == [
        ("comment", "-- first; a comment"), ("keyword", "SELECT"), ("hint", "/*+"), ("hint", "STATE_TTL"),
        ("hint", "("), ("hint", "'t'"), ("hint", "="), ("hint", "'1 h'"), ("hint", ")"), ("hint", "*/"),
        ("quoted", "`a b`"), ("number", "1.5"), ("string", "'it''s'"), ("comment", "/* and\nanother */"),
        ("keyword", "FROM"), ("keyword", "WHERE"), ("string", "'open"),
    ]  # fmt: skip


def test_lines_are_the_text() -> None:
    line_of = SqlLexer(lambda: True).lex_document(Document(TEXT))
    lines = ["".join(piece[1] for piece in line_of(number)) for number in range(3)]
    assert "\n".join(lines) == TEXT
    assert ("class:sql.comment", "another */") in line_of(2)
    assert SqlLexer(lambda: False).lex_document(Document(TEXT))(1) == [("", TEXT.split("\n")[1])]


@pytest.mark.parametrize("scheme", ColorSchema)
def test_each_scheme_has_colors(scheme: ColorSchema) -> None:
    assert set(SCHEMES) == {each.value for each in ColorSchema}
    keyword = style_of(scheme.value).get_attrs_for_style_str("class:sql.keyword")
    assert bool(keyword.color) == (scheme is not ColorSchema.DEFAULT)
