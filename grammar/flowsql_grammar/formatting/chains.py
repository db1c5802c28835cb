"""Chains: what repeats on one level, as operands with operators, tables with joins, queries with UNION."""

from __future__ import annotations

from flowsql_grammar.formatting.concrete import Node, Part, is_word
from flowsql_grammar.formatting.document import HARD, LINE, SPACE, Cat, Doc, Group, Indent
from flowsql_grammar.formatting.layout import doc_of, flow

_FILLED = ("+", "-", "*", "/", "%", "||")
_JOINS = frozenset(("join", "join_on", "join_using"))


def chain(node: Node) -> Doc:
    """Operands of one level: all in a line, or each with its operator in front on a line of its own."""
    first, *links = node.parts
    actions = {link.action for link in links if isinstance(link, Node)}
    if actions & (_JOINS | {"comma_join"}):
        return _relations(node)
    if "set_operation" in actions:
        return _set_operations(node)
    if actions & {"item_access", "field_access"}:
        return flow([first, *(part for link in links if isinstance(link, Node) for part in link.parts)], tight=True)
    rest = Cat([_link(link) for link in links])
    node.inside = Group(Cat([doc_of(first), rest]))
    return Group(Cat([doc_of(first), Indent(rest)]))


def _link(link: Part) -> Doc:
    """An operator and its right operand, and what stands before them."""
    operator = link.parts[0] if isinstance(link, Node) and link.action in ("binary", "multiset_op") else None
    if is_word(operator, "AND", "OR"):
        return Cat([LINE, doc_of(link)])
    if is_word(operator, "MULTISET", *_FILLED):
        # Long sums and texts are filled up; comparisons break inside of their operands only.
        return Group(Cat([LINE, doc_of(link)]))
    operand = link.parts[-1] if isinstance(link, Node) else None
    if operator is not None and isinstance(operand, Node) and operand.action == "chain":
        return Group(Cat([LINE, doc_of(link)]))
    return Cat([SPACE, doc_of(link)])


def has_joins(relation: Node) -> bool:
    """Whether tables are joined by more than commas."""
    return any(isinstance(link, Node) and link.action in _JOINS for link in relation.parts[1:])


def _relations(node: Node) -> Doc:
    """Tables with what joins them."""
    first, *links = node.parts
    found: list[Doc] = [doc_of(first)]
    joins = has_joins(node)
    for link in links:
        assert isinstance(link, Node)
        if link.action == "comma_join":
            comma, table = link.parts
            found += [doc_of(comma), HARD if joins else LINE, Indent(doc_of(table)) if joins else doc_of(table)]
        else:
            found += [HARD, doc_of(link)]
    return Cat(found)


def _set_operations(node: Node) -> Doc:
    """Queries with UNION and the like on lines between."""
    first, *links = node.parts
    found: list[Doc] = [doc_of(first)]
    for link in links:
        assert isinstance(link, Node)
        *words, right = link.parts
        found += [LINE, flow(words), LINE, doc_of(right)]
    return Cat(found)
