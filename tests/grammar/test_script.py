from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from flowsql_core.span import Source, Span
from flowsql_grammar import (
    ast,
    highlight,
    is_complete,
    parse_expression,
    parse_script,
    parse_statement,
    split_statements,
)


def split(text: str) -> list[str]:
    return [text[span.start : span.end] for span in split_statements(text)]


def test_semicolons_in_strings_names_and_comments_do_not_split() -> None:
    assert split("SELECT ';' /* ; */ -- ;\n, `;`; SELECT 2;;") == ["SELECT ';' /* ; */ -- ;\n, `;`", "SELECT 2"]


def test_statement_sets_stay_whole() -> None:
    text = "BEGIN STATEMENT SET; INSERT INTO a SELECT CASE WHEN x THEN 1 END; INSERT INTO b SELECT 2; END; SELECT 1"
    assert len(split(text)) == 2
    assert [type(s).__name__ for s in parse_script(text)] == ["StatementSet", "QueryStatement"]
    assert len(split("EXPLAIN STATEMENT SET BEGIN INSERT INTO a SELECT 1; END; SELECT 1;")) == 2


def test_a_shell_may_type_a_statement_set_line_by_line() -> None:
    assert parse_statement("BEGIN STATEMENT SET;") == ast.BeginStatementSet()
    assert parse_statement("END;") == ast.EndStatementSet()


def test_a_broken_piece_does_not_hide_those_before() -> None:
    assert split("SELECT 1; SELEC 2; SELECT 'open") == ["SELECT 1", "SELEC 2", "SELECT 'open"]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1;", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT 1; -- done", True),
        ("BEGIN STATEMENT SET;", False),
        ("BEGIN STATEMENT SET; INSERT INTO t SELECT 1; END;", True),
        ("/* ;", False),
        ("", True),
    ],
)
def test_completeness(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_positions_are_those_of_the_whole_script() -> None:
    source = Source("SELECT 1;\n\nSELECT x FROM t;", "job.sql")
    second = split_statements(source)[1]
    tree = parse_statement(source, second)
    assert tree.span == second
    column = next(node for node in tree.walk() if isinstance(node, ast.ColumnRef))
    assert source.position(column.span.start) == (3, 8)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("SET", ast.Set()),
        ("SET 'a.b' = 'c d'", ast.Set("a.b", "c d")),
        ("SET a.b-c = 10min", ast.Set("a.b-c", "10min")),
        ("SET a = 'x y'", ast.Set("a", "x y")),
        ("RESET a.b", ast.Reset("a.b")),
        ("quit", ast.ClientCommand(ast.ClientCommandKind.QUIT)),
    ],
)
def test_client_forms(text: str, statement: ast.Statement) -> None:
    assert parse_statement(text) == statement


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"U&'\0041\\'", "A\\"),
        ("U&'x!0042' UESCAPE '!'", "xB"),
        (r"U&'\d83d\de00'", "\U0001f600"),
        ("_UTF8'a'", "a"),
        (r"E'a\tb\x41\'c'", "a\tbA'c"),
        ("'a'\n'b'", "ab"),
        ("'it''s'", "it's"),
    ],
)
def test_string_forms(text: str, value: str) -> None:
    tree = parse_expression(text)
    assert isinstance(tree, ast.StringLiteral)
    assert tree.value == value


def test_words_that_are_not_reserved_are_names() -> None:
    tree = parse_statement("SELECT name, type, key, map, if, first FROM model AS source")
    assert [str(node) for node in tree.walk() if isinstance(node, ast.Name)] == [
        *("name", "type", "key", "map", "if", "first", "model", "source")
    ]


def test_nodes_are_values() -> None:
    node = parse_expression("f(x, 1)")
    assert isinstance(node, ast.FunctionCall)
    assert node == parse_expression("f( x,1 )")
    assert hash(node) == hash(parse_expression("f( x,1 )"))
    assert pickle.loads(pickle.dumps(node)).span == node.span
    moved = replace(node, span=Span(7, 8))
    assert moved == node
    assert moved.span == Span(7, 8)
    with pytest.raises(FrozenInstanceError):
        node.name = node.name  # type: ignore[misc]
    match node:
        case ast.FunctionCall(ast.Identifier((ast.Name(text),)), (ast.ColumnRef(), ast.NumberLiteral("1"))):
            assert text == "f"
        case _:
            pytest.fail("positional patterns follow the order of the fields")


def test_tables_with_arguments() -> None:
    tree = parse_statement("SELECT * FROM f(t => TABLE a PARTITION BY (b, c) ORDER BY d DESC, cols => DESCRIPTOR(e))")
    call = next(node for node in tree.walk() if isinstance(node, ast.FunctionCall))
    table, columns = call.args
    assert isinstance(table, ast.NamedArgument)
    assert isinstance(table.value, ast.TableArgument)
    assert len(table.value.partition_by) == 2
    assert table.value.order_by[0].descending
    assert isinstance(columns, ast.NamedArgument)
    assert isinstance(columns.value, ast.Descriptor)


def test_highlighting_knows_classes() -> None:
    assert [label for label, _ in highlight("SELECT a1, 'x', 1.5 FROM `t` @")] == [
        *("keyword", "name", "operator", "string", "operator", "number", "keyword", "name", "error")
    ]
