"""How expressions, calls, types and patterns are laid out."""

from __future__ import annotations

from flowsql_grammar.formatting.chains import chain
from flowsql_grammar.formatting.concrete import CALLS, Leaf, Node, first_leaf, first_word, is_word, leaves, named
from flowsql_grammar.formatting.document import HARD, LINE, SPACE, Cat, Doc, Group, Indent, spaced
from flowsql_grammar.formatting.layout import (
    Layout,
    bracket,
    clause,
    doc_of,
    flow,
    inside_doc,
    is_list,
    leaf_doc,
    list_layout,
    notes,
    tight,
)
from flowsql_grammar.formatting.query import is_query, query_behind, subquery


def _brackets(node: Node) -> Doc:
    """What the grammar calls ``only``: brackets around a query, an expression, a list, and words in front of them."""
    parts = node.parts
    if len(parts) == 3 and is_word(parts[0], "(") and isinstance(parts[0], Leaf) and isinstance(parts[2], Leaf):
        inner = parts[1]
        if is_query(inner):
            return subquery(node, broken=False)
        return bracket(parts[0], inside_doc(inner), parts[2])
    return flow(parts)


def _optional(node: Node) -> Doc:
    """What may be left out: keywords with a list or something else behind."""
    parts = node.parts
    if is_word(parts[0], "AS") and is_query(parts[-1]):
        return query_behind(parts[:-1], parts[-1])
    last = parts[-1]
    if isinstance(last, Node) and last.action == "group_by" and len(last.parts) == 1:
        parts = [*parts[:-1], last.parts[0]]
    is_clause = len(parts) > 1 and is_list(parts[-1]) and all(isinstance(part, Leaf) for part in parts[:-1])
    if is_clause or is_word(parts[0], "WHERE", "HAVING", "QUALIFY"):
        return clause(parts[:-1], parts[-1])
    return flow(parts)


def _call(node: Node) -> Doc:
    return flow(node.parts, tight=True, hug=True)


def _bracketed_lines(node: Node) -> Doc:
    """A window: its clauses stand one a line where they do not fit on one."""
    return flow(node.parts, lines=True)


def _case(node: Node) -> Doc:
    *front, last = node.parts
    assert isinstance(last, Leaf)
    dangling = notes([one for one in last.before if one.own])
    head: list[Doc] = []
    lines: list[Doc] = []
    for part in front:
        if isinstance(part, Node) and (part.action == "list" or is_word(part.parts[0], "ELSE")):
            lines += [LINE, doc_of(part)]
        else:
            head += [SPACE, doc_of(part)] if head else [doc_of(part)]
    if dangling:
        lines += [HARD, *dangling]
    end = leaf_doc(last, [one for one in last.before if not one.own])
    return Group(Cat([*head, Indent(Cat(lines)), LINE, end]))


def _when(node: Node) -> Doc:
    at = next(number for number, part in enumerate(node.parts) if is_word(part, "THEN"))
    return Group(Cat([flow(node.parts[:at]), Indent(Cat([LINE, flow(node.parts[at:])]))]))


def _unary(node: Node) -> Doc:
    sign, operand = node.parts
    if is_word(sign, "-", "+") and first_leaf(operand).text not in ("-", "+") and not first_leaf(operand).before:
        return Cat([doc_of(sign), doc_of(operand)])
    return flow(node.parts)


def _glued(node: Node) -> Doc:
    return Cat([doc_of(part) for part in node.parts])


def _strings(node: Node) -> Doc:
    """Pieces of one string stand on lines of their own."""
    first, *rest = node.parts
    behind = [Cat([SPACE if first_word(part) == "UESCAPE" else HARD, doc_of(part)]) for part in rest]
    return Cat([doc_of(first), Indent(Cat(behind))]) if behind else doc_of(first)


def _distribution(node: Node) -> Doc:
    """``BY HASH(a) INTO 4 BUCKETS``; without HASH a blank stands before the bracket."""
    at = next(number for number, part in enumerate(node.parts) if first_word(part) == "(")
    return spaced([flow(node.parts[: at + 1], tight=at > 1), *(doc_of(part) for part in node.parts[at + 1 :])])


def _type(node: Node) -> Doc:
    return flow(node.parts, tight=True, angles=True)


def _escape(node: Node) -> Doc:
    """``{fn``, ``{d``: in small letters, as everybody writes them."""
    for leaf in leaves(node):
        leaf.is_word = False
    return Cat([doc_of(part) for part in node.parts])


def _json_array_agg(node: Node) -> Doc:
    """As a call, but for WITHIN GROUP behind it."""
    at = next(number for number, part in enumerate(node.parts) if is_word(part, ")"))
    return spaced([flow(node.parts[: at + 1], tight=True), *(doc_of(part) for part in node.parts[at + 1 :])])


def _between(node: Node) -> Doc:
    """``a BETWEEN b AND c``, broken in front of AND."""
    at = next(number for number, part in enumerate(node.parts) if is_word(part, "AND"))
    return Group(Cat([flow(node.parts[:at]), Indent(Cat([LINE, flow(node.parts[at:])]))]))


#: Forms with brackets that no blank stands before.
_LIKE_CALLS = named(
    "cast try_cast extract round_to_unit round_to_week trim trim_characters trim_side trim_all position overlay "
    "substring translate_using convert_to timestamp_add timestamp_diff json_exists json_value json_query "
    "json_object_empty json_object json_object_agg json_array_empty json_array new_object hint row array map multiset "
    "array_query map_query multiset_query permute unnest lateral_unnest start_mode"
)
_TYPES = named("array_type map_type multiset_type row_type empty_row_type structured_type raw_type")
_REPEATS = named("repeat_star repeat_plus repeat_optional repeat_exactly repeat_at_least repeat_between repeat_at_most")

EXPRESSIONS: dict[str, Layout] = {
    "chain": chain,
    "list": list_layout,
    "only": _brackets,
    "opt": _optional,
    "between": _between,
    "case": _case,
    "json_array_agg": _json_array_agg,
    "when": _when,
    "unary": _unary,
    "path": _glued,
    "qualified_star": _glued,
    "qualified_star_item": _glued,
    "signed_number": _glued,
    "negative_seed": _glued,
    "seed": _glued,
    "string": _strings,
    "string_literal": _strings,
    "escape": _escape,
    "window_spec": _bracketed_lines,
    "distribution": _distribution,
    **dict.fromkeys(CALLS, _call),
    **dict.fromkeys(("table_function", "lateral_table_function"), _call),
    **dict.fromkeys(_LIKE_CALLS, tight),
    **dict.fromkeys(_TYPES, _type),
    **dict.fromkeys(_REPEATS, _glued),
}
