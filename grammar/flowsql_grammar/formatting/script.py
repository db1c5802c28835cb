"""The front door: a script's text to the same script, laid out."""

from __future__ import annotations

from flowsql_core.errors import FlowSqlError, InternalError
from flowsql_core.span import Source
from flowsql_grammar import ast
from flowsql_grammar.formatting.comments import attach_comments
from flowsql_grammar.formatting.concrete import (
    Comment,
    Leaf,
    Node,
    Part,
    concrete_tree,
    leaves,
    mark_functions,
)
from flowsql_grammar.formatting.document import Cat, Doc, Renderer
from flowsql_grammar.formatting.expression import EXPRESSIONS
from flowsql_grammar.formatting.layout import doc_of, leaf_doc, notes, plain, written
from flowsql_grammar.formatting.query import QUERIES
from flowsql_grammar.formatting.stand_ins import StandIns
from flowsql_grammar.formatting.statement import STATEMENTS
from flowsql_grammar.lexer import Token, tokenize
from flowsql_grammar.script import bare_words, cut, parse_script

DEFAULT_WIDTH = 100

_LAYOUTS = {**EXPRESSIONS, **QUERIES, **STATEMENTS}
_CLIENT_COMMANDS = ("QUIT", "EXIT", "CLEAR", "HELP")
_ROUNDS = 4
_BOM = "\ufeff"


def format_script(source: Source | str, width: int = DEFAULT_WIDTH) -> str:
    r"""The statements of a script as people like to read them: the same trees, the same comments.

    Args:
        source: the script; line ends of Windows become ``\n``, a byte order mark goes. ``${name}`` may stand where an
            identifier may.
        width: columns that lines do not exceed where they can be broken.

    Raises:
        ParseError: a statement is not Flink SQL.
        InternalError: what came out would mean something else, which is a bug of the formatter.

    >>> print(format_script("select a,count(*) from t group by a"), end="")
    SELECT a, COUNT(*)
    FROM t
    GROUP BY a
    """
    source = normalised(source)
    stand_ins = StandIns(source.text)
    try:
        return stand_ins.put_back(_formatted(Source(stand_ins.text, source.name, source.first_line), width))
    except FlowSqlError as error:
        # Everything stands where it stood.
        error.source, error.message = source, stand_ins.shown(error.message)
        raise


def _formatted(source: Source, width: int) -> str:
    script = Script(source)
    text = script.render(width)
    made = Script(Source(text))
    # What is laid out stays as it is when it is laid out again: a comment that came to begin a line may break others.
    for _ in range(_ROUNDS):
        again = made.render(width)
        if again == text:
            break
        text, made = again, Script(Source(again))
    script.check(made)
    return text


def normalised(source: Source | str) -> Source:
    """The text that is formatted: without a byte order mark, its lines ended alike."""
    source = Source(source) if isinstance(source, str) else source
    text = source.text.removeprefix(_BOM).replace("\r\n", "\n")
    return source if text == source.text else Source(text, source.name, source.first_line)


def comments_of(source: Source | str) -> list[str]:
    """The comments of a script, in order, without blanks at their ends."""
    return Script(normalised(source)).comments()


class _Statement:
    """A statement, its first token, and the semicolon behind it."""

    def __init__(self, tree: Part | None, mark: Leaf | None) -> None:
        self.tree = tree
        self.mark = mark


class Script:
    """A script as trees of tokens."""

    def __init__(self, source: Source) -> None:
        """Raises ParseError where a statement is not Flink SQL."""
        self.source = source
        self.statements = [self._statement(piece, mark) for piece, mark, _ in cut(tokenize(source))]
        self.leaves: list[Leaf] = []
        for one in self.statements:
            self.leaves += [*(leaves(one.tree) if one.tree is not None else ()), *([one.mark] if one.mark else ())]
        mark_functions([one.tree for one in self.statements if one.tree is not None])
        self.rest: list[Comment] = attach_comments(self.leaves, source)

    def _statement(self, piece: list[Token], mark: Token | None) -> _Statement:
        semicolon = None if mark is None else Leaf(";", mark.start, mark.end)
        if not piece:
            return _Statement(None, semicolon)
        first, last = piece[0], piece[-1]
        words = bare_words(self.source, piece)
        if words is not None:
            return _Statement(Leaf(" ".join(words), first.start, last.end), semicolon)
        if len(piece) == 1 and first.text.upper() in _CLIENT_COMMANDS:
            return _Statement(Leaf(first.text, first.start, first.end, is_word=True), semicolon)
        return _Statement(concrete_tree([*piece, Token(0, "", last.end, last.end)], self.source), semicolon)

    def render(self, width: int) -> str:
        """The script, laid out."""
        texts: list[tuple[str, bool]] = []
        for one in self.statements:
            first = next(leaves(one.tree)) if one.tree is not None else one.mark
            assert first is not None
            blank = first.before[0].blank if first.before else first.blank
            parts: list[Doc] = [] if one.tree is None else [_laid_out(one.tree)]
            if one.mark is not None:
                parts.append(leaf_doc(one.mark))
            texts.append((Renderer(width).render(Cat(parts)), blank))
        if self.rest:
            texts.append((Renderer(width).render(Cat(notes(self.rest))), self.rest[0].blank))
        return _joined(texts)

    def comments(self) -> list[str]:
        """The comments, in order."""
        found = [one for leaf in self.leaves for one in (*leaf.before, *leaf.after)]
        return [one.text for one in (*found, *self.rest)]

    def check(self, made: Script) -> None:
        """Make sure that what came out has the same statements and comments.

        Raises:
            InternalError: it has not.
        """
        if made.comments() != self.comments():
            raise InternalError(f"Formatting '{self.source.name}' would lose or move a comment: nothing was changed.")
        if parse_script(made.source) != self.trees():
            raise InternalError(f"Formatting '{self.source.name}' would change a statement: nothing was changed.")

    def trees(self) -> tuple[ast.Statement, ...]:
        """The syntax trees of the script with names of built-in functions in capitals."""
        text = self.source.text
        pieces: list[str] = []
        at = 0
        for leaf in self.leaves:
            if leaf.is_function or leaf.is_word:
                pieces += [text[at : leaf.start], written(leaf)]
                at = leaf.end
        return parse_script(Source("".join([*pieces, text[at:]]), self.source.name, self.source.first_line))


def _laid_out(tree: Part) -> Doc:
    """The layout of a tree; those of what is below come first."""
    waiting: list[tuple[Part, bool]] = [(tree, False)]
    while waiting:
        part, ready = waiting.pop()
        if isinstance(part, Leaf):
            continue
        if ready:
            part.doc = _LAYOUTS.get(part.action, plain)(part)
        else:
            waiting.append((part, True))
            waiting.extend((below, False) for below in part.parts if isinstance(below, Node))
    return doc_of(tree)


def _joined(texts: list[tuple[str, bool]]) -> str:
    """Statements below each other, with an empty line where one stood, and beside a statement of several lines."""
    found: list[str] = []
    before = ""
    for text, blank in texts:
        if found and (blank or "\n" in before or "\n" in text):
            found.append("")
        found.append(text)
        before = text
    return "".join(f"{one}\n" for one in found)
