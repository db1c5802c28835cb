"""The tree of all tokens: what the grammar's rules made of a statement, no token and no comment left out.

The parser's tables drive it, so that it knows exactly which words are keywords where they stand. Chains and lists,
which lean to the left in the grammar, are flat here: walks over this tree go as deep as brackets do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from flowsql_core.errors import ParseError
from flowsql_core.span import Source
from flowsql_grammar.formatting.document import Doc
from flowsql_grammar.formatting.functions import FUNCTIONS
from flowsql_grammar.lexer import Token, kinds
from flowsql_grammar.parser import Rule, rule_of
from flowsql_grammar.tables import tables


def named(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


#: What the lexer passes over, but for blanks.
COMMENT = re.compile(r"--[^\r\n]*|//[^\r\n]*|/\*(?s:.)*?\*/")
_PIECE = re.compile(r"\{|\w+")
_JOINED = ("IF_EXISTS", "IF_NOT_EXISTS", "IGNORE_NULLS", "RESPECT_NULLS", "FORMAT_JSON")
_JOINED_ESCAPES = ("ESCAPE_FN", "ESCAPE_DATE", "ESCAPE_TIME", "ESCAPE_TIMESTAMP")
#: Actions of rules that repeat to their own left: what they say of their first part and the rest is said flat.
_CHAINS = named(
    "binary comma_join join join_on join_using set_operation item_access field_access sequence alternation multiset_op"
)
_NAMES = named("non_reserved reserved_function name quoted_name unit_name")
#: Rules that begin with the name of a function.
CALLS = named(
    "function_call keyword_call quantified_call ordered_call null_treated_call quantified_null_treated_call "
    "implicit_table_function"
)
_TRANSPARENT = ("only", "opt")


class Comment:
    """A comment, as written but for blanks at its end.

    ``own``: its line begins with it. ``last``: nothing follows in its line. ``blank``: an empty line stands before it.
    """

    __slots__ = ("blank", "column", "last", "own", "text")

    def __init__(self, text: str, own: bool, last: bool, blank: bool, column: int) -> None:
        self.text = text
        self.own = own
        self.last = last
        self.blank = blank
        self.column = column


class Leaf:
    """A token with its comments. ``is_word``: it acts as a keyword. ``blank``: an empty line stands before it."""

    __slots__ = ("after", "before", "blank", "doc", "end", "is_function", "is_word", "start", "text")

    def __init__(self, text: str, start: int, end: int, is_word: bool = False) -> None:
        self.text = text
        self.start = start
        self.end = end
        self.is_word = is_word
        self.is_function = False
        self.before: list[Comment] = []
        self.after: list[Comment] = []
        self.blank = False
        self.doc: Doc | None = None


class Node:
    """What a rule made, by the name of its action; ``left`` is the number of its non-terminal.

    ``inside``: its layout where brackets of its own stand around it, if that is another one.
    """

    __slots__ = ("action", "doc", "inside", "left", "parts")

    def __init__(self, action: str, left: int, parts: list[Part]) -> None:
        self.action = action
        self.left = left
        self.parts = parts
        self.doc: Doc | None = None
        self.inside: Doc | None = None


Part = Leaf | Node


def leaves(part: Part) -> Iterator[Leaf]:
    """The tokens of a part, in order."""
    waiting = [part]
    while waiting:
        at = waiting.pop()
        if isinstance(at, Leaf):
            yield at
        else:
            waiting.extend(reversed(at.parts))


def nodes(part: Part) -> Iterator[Node]:
    """The nodes of a part, those above first."""
    waiting = [part]
    while waiting:
        at = waiting.pop()
        if isinstance(at, Node):
            yield at
            waiting.extend(reversed(at.parts))


def mark_functions(trees: Sequence[Part]) -> None:
    """Note which names call built-in functions. Those that the script itself defines are the user's."""
    every = [node for tree in trees for node in nodes(tree)]
    own = {_created(node) for node in every if node.action in ("create_function", "create_system_function")}
    builtin = FUNCTIONS - own
    for node in every:
        if node.action in CALLS:
            name = list(leaves(node.parts[0]))
            if len(name) == 1 and name[0].text.upper() in builtin:
                name[0].is_function = True


def _created(node: Node) -> str:
    """The name of the function that a statement defines, without its path, upper case."""
    found = list(leaves(node))
    at = next(number for number, leaf in enumerate(found) if leaf.is_word and leaf.text.upper() == "AS")
    return found[at - 1].text.strip("`").upper()


def first_leaf(part: Part) -> Leaf:
    """The first token of a part."""
    while isinstance(part, Node):
        part = part.parts[0]
    return part


def last_leaf(part: Part) -> Leaf:
    """The last token of a part."""
    while isinstance(part, Node):
        part = part.parts[-1]
    return part


def first_word(part: Part) -> str:
    """The text of the first token of a part, upper case."""
    return first_leaf(part).text.upper()


def is_word(part: Part | None, *texts: str) -> bool:
    """Whether a part is one of these keywords or signs."""
    return isinstance(part, Leaf) and part.text.upper() in texts


def concrete_tree(tokens: list[Token], source: Source) -> Part:
    """The tree of the tokens of a statement, which end with one of kind 0; comments are not in yet.

    Raises:
        ParseError: the tokens are no statement.
    """
    loaded, known = tables(), kinds()
    joined = {loaded.terminal_ids[name] for name in (*_JOINED, *_JOINED_ESCAPES)}
    words = frozenset(known.words.values())
    states = [loaded.starts["statement"]]
    values: list[Part | None] = [None]
    end_state = loaded.ends["statement"]
    index = 0
    while True:
        token = tokens[index]
        row = loaded.row(states[-1])
        action = row.get(token.kind)
        is_keyword = action is not None and token.kind in words
        if action is None and token.kind in known.soft:
            action = row.get(known.ident)
        if action is None:
            from flowsql_grammar.expected import syntax_error

            raise syntax_error(tokens, index, source, "statement").within(source)
        if not action & 1:
            states.append(action >> 1)
            if token.kind in joined:
                values.append(_pieces(token, source))
            else:
                text = source.text[token.start : token.end]
                is_keyword = is_keyword or token.kind == loaded.terminal_ids["FINAL_CALL"]
                values.append(Leaf(text, token.start, token.end, is_keyword))
            index += 1
            continue
        rule = rule_of(action >> 1)
        made: Part | None = None
        if rule.length:
            made = _made(rule, values[-rule.length :])
            del states[-rule.length :], values[-rule.length :]
        states.append(loaded.row(states[-1])[rule.left] >> 1)
        if token.kind == 0 and states[-1] == end_state:
            if made is None:
                raise ParseError("empty", "SQL parse failed. There is no statement.", token.span).within(source)
            return made
        values.append(made)


def _pieces(token: Token, source: Source) -> Node:
    """The words of a token that the lexer has joined."""
    text, at = source.text, token.start
    found: list[Part] = []
    while at < token.end:
        comment = COMMENT.match(text, at)
        piece = None if comment else _PIECE.match(text, at)
        if piece is not None:
            found.append(Leaf(piece.group(), piece.start(), piece.end(), is_word=piece.group() != "{"))
        at = comment.end() if comment else piece.end() if piece else at + 1
    return Node("escape" if isinstance(found[0], Leaf) and found[0].text == "{" else "words", -1, found)


def _made(rule: Rule, values: Sequence[Part | None]) -> Part | None:
    parts: list[Part] = []
    first = values[0]
    if isinstance(first, Node) and first.action == "splice":
        # It has no other owner, and long lists would take quadratic time otherwise.
        parts = first.parts
    elif (
        isinstance(first, Node)
        and rule.action in _CHAINS
        and first.left == rule.left
        and (first.action == "chain" or first.action in _CHAINS)
    ):
        first.parts.append(Node(rule.action, -1, [part for part in values[1:] if part is not None]))
        return first
    elif first is not None:
        parts = [first]
    for value in values[1:]:
        if isinstance(value, Node) and value.action == "splice":
            parts.extend(value.parts)
        elif value is not None:
            parts.append(value)
    if not parts:
        return None
    action = rule.action
    if action in _NAMES:
        for leaf in leaves(parts[0]):
            leaf.is_word = action == "unit_name" and not leaf.text.startswith("`")
        return parts[0]
    if len(parts) == 1 and (action in _TRANSPARENT or rule.is_unit):
        return parts[0]
    if action in _CHAINS and first is not None and len(parts) > 1:
        return Node("chain", rule.left, [parts[0], Node(action, -1, parts[1:])])
    return Node(action, rule.left, parts)
