"""How statements are laid out."""

from __future__ import annotations

from flowsql_grammar.formatting.concrete import Leaf, Node, Part, first_leaf, first_word, is_word, named
from flowsql_grammar.formatting.document import BLANK, HARD, LINE, SPACE, Cat, Doc, Group, Indent, spaced
from flowsql_grammar.formatting.layout import (
    Layout,
    bracket,
    clause,
    doc_of,
    flow,
    is_list,
    leaf_doc,
    notes,
)
from flowsql_grammar.formatting.query import is_query, is_simple, query, query_behind

_BLOCKS = named("physical_column computed_column metadata_column watermark table_constraint expectation option")
#: Clauses behind what is created that go on in its last line where they fit.
_TAIL = named("COMMENT DISTRIBUTED PARTITIONED WITH LIKE LANGUAGE USING INPUT OUTPUT AS")
#: Those that stand on lines of their own.
_LINES = frozenset(("START_MODE", "FRESHNESS", "REFRESH_MODE"))


def _query_statement(node: Node) -> Doc:
    return query(node.parts[0])


def _insert(node: Node) -> Doc:
    """The target, and the query below it; VALUES stay beside it where they fit."""
    at = next(number for number, part in enumerate(node.parts) if is_query(part))
    source = node.parts[at]
    beside = is_simple(source) and first_word(source) in ("VALUES", "VALUE")
    shown = Group(Cat([flow(node.parts[:at]), LINE if beside else HARD, query(source)]))
    return spaced([shown, *(doc_of(part) for part in node.parts[at + 1 :])], HARD)


def _explained(node: Node) -> Doc:
    """A statement behind words: in their line if it is a short one."""
    *head, inner = node.parts
    return Group(Cat([flow(head), LINE, doc_of(inner)]))


def _create(node: Node) -> Doc:
    """Columns and options one a line; clauses behind them where they fit, a query below them."""
    found: list[Doc] = []
    parts = node.parts
    for number, part in enumerate(parts):
        if number and is_query(part) and is_word(parts[number - 1], "AS"):
            found += [_below(found, part), query(part)]
            continue
        word = first_word(part)
        is_tail = word in _TAIL and number > 1
        if isinstance(part, Node) and (_is_block(part) or _is_block(part.parts[-1])):
            # A group of a line's end alone breaks where what follows does not fit.
            found += [Group(LINE) if is_tail else SPACE, _block(part)]
        elif word == "AS" and isinstance(part, Node) and is_query(part.parts[-1]):
            found += [Group(LINE), doc_of(part.parts[0]), _below(found, part.parts[-1]), query(part.parts[-1])]
        elif is_tail:
            found.append(Group(Cat([LINE, doc_of(part)])))
        else:
            found += [HARD if word in _LINES else SPACE, doc_of(part)]
    return Cat(found)


def _below(before: list[Doc], inner: Part) -> Doc:
    """What stands between AS and its query: a blank where all of the statement is short."""
    return Group(LINE) if is_simple(inner) and not any(one.hard for one in before) else HARD


def _block(part: Node) -> Doc:
    """Columns or options in brackets, one a line, with the word before them."""
    if not _is_block(part):
        inner = part.parts[-1]
        assert isinstance(inner, Node)
        return Cat([flow(part.parts[:-1]), SPACE, _block(inner)])
    opening, *content, closing = part.parts
    assert isinstance(opening, Leaf)
    assert isinstance(closing, Leaf)
    return bracket(opening, doc_of(content[0]) if content else None, closing, broken=bool(content))


def _is_block(part: Part) -> bool:
    """Whether a part is a list of columns with types, or of options, in brackets."""
    if not isinstance(part, Node) or part.action != "only" or not is_word(part.parts[0], "("):
        return False
    inner = part.parts[1]
    return (
        isinstance(inner, Node)
        and inner.action == "list"
        and any(isinstance(one, Node) and one.action in _BLOCKS for one in inner.parts)
    )


def _create_view(node: Node) -> Doc:
    return query_behind(node.parts[:-1], node.parts[-1])


def _update(node: Node) -> Doc:
    at = next(number for number, part in enumerate(node.parts) if is_word(part, "SET"))
    return Group(
        spaced(
            [
                flow(node.parts[:at]),
                clause(node.parts[at : at + 1], node.parts[at + 1]),
                *(doc_of(part) for part in node.parts[at + 2 :]),
            ],
            LINE,
        )
    )


def _delete(node: Node) -> Doc:
    at = next((number for number, part in enumerate(node.parts) if first_word(part) == "WHERE"), len(node.parts))
    return Group(spaced([flow(node.parts[:at]), *(doc_of(part) for part in node.parts[at:])], LINE))


def _merge(node: Node) -> Doc:
    """MERGE INTO, USING, ON and each WHEN on a line of its own."""
    lines: list[list[Part]] = []
    for part in node.parts:
        if first_word(part) in ("MERGE", "USING", "ON", "WHEN"):
            lines.append([])
        lines[-1].append(part)
    return spaced([flow(parts) for parts in lines], HARD)


def _statement_set(node: Node) -> Doc:
    """The words, and the INSERTs further in."""
    at = next(number for number, part in enumerate(node.parts) if is_list(part))
    head, inserts, end = node.parts[:at], node.parts[at], node.parts[at + 1]
    assert isinstance(inserts, Node)
    assert isinstance(end, Leaf)
    begin = spaced([flow(head[:-1]), doc_of(head[-1])], HARD) if is_word(head[-1], "BEGIN") else flow(head)
    inside: list[Doc] = []
    before: Doc | None = None
    for part in inserts.parts:
        if is_word(part, ";"):
            inside.append(doc_of(part))
            continue
        shown = doc_of(part)
        inside.append(HARD)
        if before is not None and (before.hard or shown.hard or first_leaf(part).blank):
            inside.append(BLANK)
        inside.append(shown)
        before = shown
    dangling = notes([one for one in end.before if one.own])
    if dangling:
        inside += [HARD, *dangling]
    closed = leaf_doc(end, [one for one in end.before if not one.own])
    return Cat([begin, Indent(Cat(inside)), HARD, closed])


_CREATED = named(
    "create_table replace_table create_materialized_table create_or_alter_materialized_table create_model "
    "create_function create_system_function create_catalog create_database create_connection create_system_connection"
)
_ABOVE = named("explain explain_plan_for explain_lineage describe_statement execute")

STATEMENTS: dict[str, Layout] = {
    "query_statement": _query_statement,
    "insert": _insert,
    "insert_columns": _insert,
    "update": _update,
    "delete": _delete,
    "create_view": _create_view,
    "set_query": _create_view,
    "statement_set": _statement_set,
    **dict.fromkeys(("merge", "merge_insert_only"), _merge),
    **dict.fromkeys(_ABOVE, _explained),
    **dict.fromkeys(_CREATED, _create),
}
