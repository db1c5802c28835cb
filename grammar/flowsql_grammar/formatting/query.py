"""How queries and relations are laid out."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_grammar.formatting.chains import has_joins
from flowsql_grammar.formatting.concrete import Leaf, Node, Part, first_word, is_word
from flowsql_grammar.formatting.document import HARD, LINE, SPACE, Cat, Doc, Group, Indent, spaced
from flowsql_grammar.formatting.layout import (
    Layout,
    behind,
    bracket,
    clause,
    doc_of,
    flow,
    inside_doc,
    is_list,
    items_doc,
)

_QUERIES = frozenset(("q_np", "with_query", "q_par_limit"))


def is_query(part: Part) -> bool:
    """Whether a part is a query, in brackets or not."""
    if isinstance(part, Node) and part.action == "only" and len(part.parts) == 3:
        return is_word(part.parts[0], "(") and is_query(part.parts[1])
    return isinstance(part, Node) and part.action in _QUERIES


def is_simple(part: Part) -> bool:
    """Whether a query may stand on one line: SELECT and FROM, and no more."""
    if not isinstance(part, Node):
        return True
    if part.action == "with_query":
        return False
    if part.action in ("q_np", "only", "query_statement", "query_argument"):
        inner = [one for one in part.parts if isinstance(one, Node)]
        return len(inner) == 1 and is_simple(inner[0])
    if part.action == "select":
        last = part.parts[-1]
        return not (isinstance(last, Node) and last.action == "from_clauses") or len(last.parts) == 2
    return part.action in ("values", "explicit_table")


def query(part: Part) -> Doc:
    """A query that is not in brackets, on one line only if it is simple."""
    return Group(doc_of(part), broken=not is_simple(part))


def query_behind(head: Sequence[Part], inner: Part) -> Doc:
    """``... AS query``: in one line if the query is simple and all of it fits."""
    return Group(Cat([flow(head), LINE, query(inner)]))


def subquery(node: Node, *, broken: bool) -> Doc:
    """A query in brackets; ``broken``: on one line only if it is simple."""
    opening, inner, closing = node.parts
    assert isinstance(opening, Leaf)
    assert isinstance(closing, Leaf)
    return bracket(opening, doc_of(inner), closing, broken=broken and not is_simple(inner))


def _select(node: Node) -> Doc:
    at = next(number for number, part in enumerate(node.parts) if is_list(part))
    parts: list[Doc] = [clause(node.parts[:at], node.parts[at])]
    for part in node.parts[at + 1 :]:
        parts += [LINE, doc_of(part)]
    return Cat(parts)


def _from_clauses(node: Node) -> Doc:
    """FROM ... WHERE ... and so on; a line each."""
    head, relation, *rest = node.parts
    return spaced([from_clause(head, relation), *(doc_of(part) for part in rest)], LINE)


def from_clause(head: Part, relation: Part) -> Doc:
    """FROM with tables behind commas as a list, and with joins on lines of their own."""
    if isinstance(relation, Node) and relation.action == "chain" and not has_joins(relation):
        return Group(Cat([doc_of(head), Indent(Cat([LINE, doc_of(relation)]))]))
    return behind(doc_of(head), relation)


def _join(node: Node) -> Doc:
    """``JOIN table ON condition``, the condition on a line of its own where it does not fit."""
    at = next((number for number, part in enumerate(node.parts) if is_word(part, "ON", "USING")), len(node.parts))
    table = flow(node.parts[:at])
    if at == len(node.parts):
        return table
    word, condition = node.parts[at:]
    return Cat([table, Group(Indent(Cat([LINE, doc_of(word), SPACE, inside_doc(condition)])))])


def _lines(node: Node) -> Doc:
    """Clauses, a line each."""
    return spaced([doc_of(part) for part in node.parts], LINE)


def _with_query(node: Node) -> Doc:
    at = next(number for number, part in enumerate(node.parts) if is_list(part))
    ctes = node.parts[at]
    assert isinstance(ctes, Node)
    head = Cat([flow(node.parts[:at]), SPACE, items_doc(ctes.parts, hard=True)])
    return spaced([head, *(doc_of(part) for part in node.parts[at + 1 :])], HARD)


def _common_table(node: Node) -> Doc:
    *head, inner = node.parts
    assert isinstance(inner, Node)
    return Cat([flow(head), SPACE, subquery(inner, broken=True)])


def _derived_table(node: Node) -> Doc:
    *head, inner = node.parts
    assert isinstance(inner, Node)
    shown = subquery(inner, broken=True)
    return Cat([flow(head), SPACE, shown]) if head else shown


def _ordered(node: Node) -> Doc:
    return clause(node.parts[:-1], node.parts[-1])


def _values(node: Node) -> Doc:
    return clause(node.parts[:-1], node.parts[-1])


def _group_by(node: Node) -> Doc:
    """What stands behind GROUP BY where it is more than a list."""
    return clause(node.parts[:-1], node.parts[-1]) if len(node.parts) > 1 else doc_of(node.parts[0])


_CLAUSES = ("PARTITION", "ORDER", "MEASURES", "ONE", "ALL", "AFTER", "PATTERN", "WITHIN", "SUBSET", "DEFINE")


def _match_recognize(node: Node) -> Doc:
    """Every clause on a line of its own."""
    word, opening, *content, closing = node.parts
    assert isinstance(opening, Leaf)
    assert isinstance(closing, Leaf)
    clauses: list[list[Part]] = []
    depth = 0
    for part in content:
        if depth == 0 and first_word(part) in _CLAUSES and not (clauses and is_word(clauses[-1][-1], "DEFINE")):
            clauses.append([])
        depth += is_word(part, "(") - is_word(part, ")")
        clauses[-1].append(part)
    shown = [_match_clause(parts) for parts in clauses]
    return Cat([doc_of(word), SPACE, bracket(opening, spaced(shown, HARD), closing, broken=True)])


def _match_clause(parts: list[Part]) -> Doc:
    if len(parts) == 1 and isinstance(parts[0], Node) and is_word(parts[0].parts[0], "MEASURES"):
        parts = parts[0].parts
    if is_word(parts[0], "MEASURES", "DEFINE"):
        return Cat([doc_of(parts[0]), Indent(Cat([HARD, doc_of(parts[-1])]))])
    return flow(parts)


QUERIES: dict[str, Layout] = {
    "select": _select,
    "from_clauses": _from_clauses,
    "q_np": _lines,
    "q_par_limit": _lines,
    "with_query": _with_query,
    "cte": _common_table,
    "derived_table": _derived_table,
    "lateral_derived_table": _derived_table,
    "order_by": _ordered,
    "values": _values,
    "group_by": _group_by,
    "match_recognize": _match_recognize,
    **dict.fromkeys(("join", "join_on", "join_using"), _join),
}
