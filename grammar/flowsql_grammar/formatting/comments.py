"""Which token a comment belongs to."""

from __future__ import annotations

import re

from flowsql_core.span import Source
from flowsql_grammar.formatting.concrete import COMMENT, Comment, Leaf, named

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_CLAUSES = named("FROM WHERE GROUP HAVING WINDOW QUALIFY ORDER LIMIT OFFSET FETCH UNION INTERSECT EXCEPT")


def attach_comments(found: list[Leaf], source: Source) -> list[Comment]:
    """Give every comment of a script to a token; those on lines behind the last token are returned.

    A comment behind a token in the same line belongs to that token, any other one to the token that follows.
    """
    previous: Leaf | None = None
    at = 0
    for leaf in found:
        before, leaf.blank = _between(source.text, at, leaf.start, previous, at_start=at == 0)
        leaf.before = before if previous is None else _left_behind(source.text, before, previous, leaf)
        previous, at = leaf, leaf.end
    rest, _ = _between(source.text, at, len(source.text), previous, at_start=at == 0)
    for here, mark, following in zip([None, *found], found, [*found[1:], None], strict=False):
        if here is not None and mark.text in (",", ";"):
            _move_behind(here, mark, following if mark.text == "," else None)
    return rest


def _between(text: str, start: int, end: int, previous: Leaf | None, *, at_start: bool) -> tuple[list[Comment], bool]:
    """The comments of a gap between tokens that belong to the next one, and whether an empty line stands before it."""
    found: list[Comment] = []
    at = start
    own = at_start
    behind = previous is not None
    places = list(COMMENT.finditer(text, start, end))
    for number, place in enumerate(places):
        gap = text[at : place.start()]
        own = own or "\n" in gap or "\r" in gap
        at = place.end()
        following = text[at : places[number + 1].start() if number + 1 < len(places) else end]
        is_line = not place.group().startswith("/*")
        last = is_line or "\n" in following or "\r" in following or at == len(text)
        shown = place.group().rstrip() if is_line else place.group()
        made = Comment(shown, own, last, bool(_BLANK_LINE.search(gap)), _column(text, place.start()))
        found.append(made)
        if behind and previous is not None and last and not own:
            previous.after += found
            found = []
        behind = behind and not own and not last
        own = last
    return found, bool(_BLANK_LINE.search(text[at:end]))


def _left_behind(text: str, before: list[Comment], previous: Leaf, leaf: Leaf) -> list[Comment]:
    """The comments in front of a clause, but for those further in than it: they go on with what stands before it.

    So an item that is commented out stays in its list.
    """
    if not (leaf.is_word and leaf.text.upper() in _CLAUSES):
        return before
    column = _column(text, leaf.start)
    count = 0
    while count < len(before) and before[count].own and before[count].last and before[count].column > column:
        count += 1
    previous.after += before[:count]
    return before[count:]


def _column(text: str, at: int) -> int:
    return at - text.rfind("\n", 0, at) - 1


def _move_behind(here: Leaf, mark: Leaf, following: Leaf | None) -> None:
    """What stands behind a token in front of a comma or semicolon stands behind that; lines of comments go to what
    follows the comma, and with them what stands behind the comma, as comments keep their order.
    """
    if not any(one.own for one in mark.before):
        if here.after:
            mark.after = here.after + mark.before + mark.after
            here.after, mark.before = [], []
    elif following is not None:
        moved = [*mark.before, *mark.after]
        for one in moved:
            one.own = one.last = True
        following.before = moved + following.before
        mark.before, mark.after = [], here.after
        here.after = []
