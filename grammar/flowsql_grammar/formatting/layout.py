"""What all layouts share: tokens with their comments, brackets, lists, and how a rule without its own layout looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowsql_grammar.formatting.concrete import Comment, Leaf, Node, Part, first_leaf, last_leaf
from flowsql_grammar.formatting.document import (
    BLANK,
    HARD,
    LINE,
    SOFT,
    SPACE,
    Cat,
    Doc,
    Group,
    Indent,
    Note,
    Text,
    filled,
)

Layout = Callable[[Node], Doc]

_OPENING = {"(": ")", "[": "]"}
_CLOSING = frozenset(_OPENING.values())
#: Nothing stands between these and what is before, or behind, them.
_NO_SPACE_BEFORE = frozenset((",", ".", ")", "]", ";", ":", "}"))
_NO_SPACE_AFTER = frozenset((".",))
_GLUED_NODES = frozenset(("one_precision", "two_precisions"))
_SIGNS = frozenset(("-", "+"))
#: From so many numbers or strings on, a list has as many on a line as fit.
_MANY = 7
_SHORT = frozenset(("number", "string_literal", "signed_number", "null_literal", "true_literal", "false_literal"))


def doc_of(part: Part) -> Doc:
    """The layout of a part; that of a node has been made before."""
    if isinstance(part, Leaf):
        return leaf_doc(part)
    assert part.doc is not None, part.action
    return part.doc


def inside_doc(part: Part) -> Doc:
    """The layout of a part that stands alone in brackets, or begins a line that is further in already."""
    while is_list(part) and isinstance(part, Node) and len(part.parts) == 1:
        part = part.parts[0]
    return part.inside if isinstance(part, Node) and part.inside is not None else doc_of(part)


def leaf_doc(leaf: Leaf, before: Sequence[Comment] | None = None) -> Doc:
    """A token with its comments; ``before``: those in front of it that are still to be written."""
    text = Text(written(leaf))
    before = leaf.before if before is None else before
    if not before and not leaf.after:
        return text
    parts: list[Doc] = notes(before)
    if before:
        parts += [BLANK, SPACE] if leaf.blank else [SPACE]
    return Cat([*parts, text, *notes(leaf.after)], noted=True)


def notes(comments: Sequence[Comment]) -> list[Doc]:
    """Comments, each in its place."""
    return [Note(one.text, one.own, one.last, one.blank) for one in comments]


def written(leaf: Leaf) -> str:
    """A token's text: keywords and built-in functions in capitals, everything else as it is."""
    return leaf.text.upper() if leaf.is_word or leaf.is_function else leaf.text


def bracket(opening: Leaf, content: Doc | None, closing: Leaf, *, broken: bool = False, hug: bool = False) -> Doc:
    """Brackets; on several lines the content stands further in, as do comments in front of the closing one.

    ``hug``: the content is something in brackets itself, which breaks in there only.
    """
    inside: list[Doc] = [] if content is None else [SOFT, content]
    for one in closing.before:
        inside += [HARD if one.own else SPACE if inside else SOFT, *notes([one])]
    closed = leaf_doc(closing, ())
    if not inside or (hug and not opening.after and not closing.before):
        return Cat([leaf_doc(opening), *inside[1:], closed])
    return Group(Cat([leaf_doc(opening), Indent(Cat(inside)), SOFT, closed]), broken)


def items_doc(parts: Sequence[Part], *, hard: bool = False) -> Doc:
    """Items one a line where they do not fit on one, each comma behind its item; empty lines between them stay."""
    found: list[Doc] = []
    line = HARD if hard else LINE
    after_item = False
    for part in parts:
        if isinstance(part, Leaf) and part.text == ",":
            found += [leaf_doc(part), line]
            after_item = False
            continue
        if after_item:
            found.append(line)
        if found and first_leaf(part).blank and not first_leaf(part).before:
            found.append(BLANK)
        found.append(doc_of(part))
        after_item = True
    made = Cat(found)
    # An item that is commented out below the others is one more item.
    made.hard = made.hard or any(one.own for one in last_leaf(parts[-1]).after)
    return made


def list_layout(node: Node) -> Doc:
    """A list: one item a line, or as many as fit where they are many short ones."""
    values = [part for part in node.parts if not (isinstance(part, Leaf) and part.text == ",")]
    if len(values) >= _MANY and len(values) < len(node.parts) and all(_is_short(value) for value in values):
        commas = [part for part in node.parts if isinstance(part, Leaf) and part.text == ","]
        behind = [*[leaf_doc(comma) for comma in commas], None]
        return filled([_with(doc_of(value), comma) for value, comma in zip(values, behind, strict=True)])
    return items_doc(node.parts)


def _with(item: Doc, comma: Doc | None) -> Doc:
    return item if comma is None else Cat([item, comma])


def _is_short(part: Part) -> bool:
    return isinstance(part, Node) and part.action in _SHORT


def flow(
    parts: Sequence[Part], *, tight: bool = False, angles: bool = False, lines: bool = False, hug: bool = False
) -> Doc:
    """Parts with blanks between; what stands in brackets breaks at its commas.

    Args:
        parts: tokens and nodes.
        tight: no blank stands before an opening bracket, as in calls.
        angles: ``<`` and ``>`` are brackets, as in types.
        lines: parts in brackets stand on lines of their own.
        hug: a single argument that is a call breaks inside of its own brackets.
    """
    opening = {**_OPENING, "<": ">"} if angles else _OPENING
    frames: list[tuple[list[Doc], Leaf | None, int]] = [([], None, 0)]
    previous: Part | None = None
    for part in parts:
        docs, opened, count = frames[-1]
        text = part.text if isinstance(part, Leaf) else ""
        if previous is not None and not _is_glued(previous, part, tight=tight, angles=angles):
            after_comma = isinstance(previous, Leaf) and previous.text == ","
            inside = opened is not None and previous is not opened
            if inside and (after_comma or (lines and text != ",") or _has_lines(part)):
                docs.append(LINE)
            elif previous is not opened:
                docs.append(SPACE)
        if text in opening:
            assert isinstance(part, Leaf)
            frames.append(([], part, 0))
        elif opened is not None and text == opening[opened.text]:
            assert isinstance(part, Leaf)
            frames.pop()
            content: Doc | None = Cat(docs) if docs else None
            if count == 1 and isinstance(previous, Node):
                content = inside_doc(previous)
            hugs = count == 1 and ((text == ">" and not _is_long(previous)) or (hug and _hugs(previous)))
            frames[-1][0].append(bracket(opened, content, part, hug=hugs))
        else:
            loose = opened is None and is_list(part)
            docs.append(Group(Indent(doc_of(part))) if loose else doc_of(part))
            frames[-1] = (docs, opened, count + 1)
        previous = part
    while len(frames) > 1:
        # A bracket that another node closes.
        docs, opened, _ = frames.pop()
        assert opened is not None
        frames[-1][0].extend([leaf_doc(opened), *docs])
    return Cat(frames[0][0])


def _is_long(part: Part | None) -> bool:
    """Whether a part is a list of several items."""
    return isinstance(part, Node) and part.action == "list" and len(part.parts) > 1


def _has_lines(part: Part) -> bool:
    """Whether a part is a list without commas."""
    return (
        is_list(part)
        and isinstance(part, Node)
        and len(part.parts) > 1
        and not any(isinstance(one, Leaf) and one.text == "," for one in part.parts)
    )


_HUGGED = frozenset(
    ("function_call", "keyword_call", "cast", "try_cast", "qualified_call", "subquery", "case", "json_value")
)


def _hugs(part: Part | None) -> bool:
    while isinstance(part, Node) and part.action == "list" and len(part.parts) == 1:
        part = part.parts[0]
    return isinstance(part, Node) and part.action in _HUGGED


def _is_glued(previous: Part, part: Part, *, tight: bool, angles: bool) -> bool:
    """Whether nothing stands between two parts."""
    if first_leaf(part).text in _NO_SPACE_BEFORE:
        return True
    if isinstance(part, Leaf):
        if angles and part.text in ("<", ">", "<>"):
            return True
    elif part.action in _GLUED_NODES:
        return True
    if isinstance(previous, Leaf):
        if previous.text in _NO_SPACE_AFTER or previous.text in _OPENING or (angles and previous.text == "<"):
            return True
    elif previous.action in ("true", "false") and first_leaf(previous).text in _SIGNS:
        return True
    return tight and first_leaf(part).text in _OPENING


def clause(words: Sequence[Part], content: Part) -> Doc:
    """Keywords and what stands behind them: a list breaks to one item a line, anything else goes on in the line."""
    head = flow(words)
    if isinstance(content, Node) and content.action == "list" and len(content.parts) > 1:
        return Group(Cat([head, Indent(Cat([LINE, doc_of(content)]))]))
    return behind(head, content)


def behind(head: Doc, content: Part) -> Doc:
    """What goes on in the line of its keywords, unless a line of comments stands between."""
    if doc_of(content).starts:
        return Cat([head, Indent(Cat([HARD, inside_doc(content)]))])
    return Cat([head, SPACE, doc_of(content)])


def is_list(part: Part) -> bool:
    """Whether a part is a list."""
    return isinstance(part, Node) and part.action == "list"


def plain(node: Node) -> Doc:
    """A node without a layout of its own."""
    return flow(node.parts)


def tight(node: Node) -> Doc:
    """A node that looks like a call."""
    return flow(node.parts, tight=True)
