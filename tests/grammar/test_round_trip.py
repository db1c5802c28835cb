from __future__ import annotations

from pathlib import Path

import pytest
from corpus_files import NOT_SQL, own_statements, pieces, refused_statements, script_text, shared_scripts

from flowsql_core.errors import ParseError
from flowsql_grammar import ast, parse_expression, parse_statement, parse_type, print_sql


def test_what_is_printed_means_the_same() -> None:
    for text in own_statements():
        tree = parse_statement(text)
        assert parse_statement(print_sql(tree)) == tree, text


def test_every_node_has_a_place() -> None:
    for text in own_statements():
        for node in parse_statement(text).walk():
            assert 0 <= node.span.start < node.span.end <= len(text), (text, node)


def test_what_flink_refuses_is_a_parse_error() -> None:
    for text in refused_statements():
        with pytest.raises(ParseError) as caught:
            parse_statement(text)
        assert caught.value.at is not None, text
        assert caught.value.source is not None, text


@pytest.mark.shared
@pytest.mark.skipif(not shared_scripts(), reason="the conformance suite is not beside the checkout")
@pytest.mark.parametrize("file", shared_scripts(), ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_shared_scripts_round_trip(file: Path) -> None:
    refused = 0
    for text in pieces(script_text(file)):
        try:
            tree = parse_statement(text)
        except ParseError:
            refused += 1
            continue
        assert parse_statement(print_sql(tree)) == tree
    assert refused == (1 if file.name in NOT_SQL else 0)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("((x + b)) * c - (d)", "(x + b) * c - d"),
        ("NOT ((x AND b) OR c)", "NOT (x AND b OR c)"),
        ("x = b IS NULL", "x = b IS NULL"),
        ("x = (b IS NULL)", "x = (b IS NULL)"),
        ("x - (y - z)", "x - (y - z)"),
        ("- - x", "- -x"),
        ("(x.b).c[1]", "(x.b).c[1]"),
        ("(x, b) in ((1, 2))", "(x, b) IN ((1, 2))"),
        ("`date`", "`date`"),
        ("'it''s'", "'it''s'"),
        ("x NOT BETWEEN 1 AND 2 AND b", "x NOT BETWEEN 1 AND 2 AND b"),
    ],
)
def test_brackets_stand_only_where_needed(text: str, printed: str) -> None:
    assert print_sql(parse_expression(text)) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("integer not null", "INT NOT NULL"),
        ("row(a int, b string 'c')", "ROW<`a` INT, b STRING 'c'>"),
        ("int array", "ARRAY<INT>"),
        ("timestamp(3) with local time zone", "TIMESTAMP_LTZ(3)"),
        ("map<string, array<decimal(10, 2) null>>", "MAP<STRING, ARRAY<DECIMAL(10, 2) NULL>>"),
    ],
)
def test_types_are_normalised(text: str, printed: str) -> None:
    assert print_sql(parse_type(text)) == printed


def test_long_chains_compare_and_print() -> None:
    text = " OR ".join(["x = 1"] * 3000)
    assert parse_expression(text) == parse_expression(text)
    assert print_sql(parse_expression(text)) == text


def test_minus_chains_lean_left() -> None:
    tree = parse_expression("x - y - z")
    assert isinstance(tree, ast.BinaryOp)
    assert isinstance(tree.left, ast.BinaryOp)


def test_intersect_binds_more_tightly_than_union() -> None:
    tree = parse_statement("SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3")
    assert isinstance(tree, ast.QueryStatement)
    body = tree.query.body
    assert isinstance(body, ast.SetOperation)
    assert body.operator is ast.SetOperator.UNION
    assert body.all
