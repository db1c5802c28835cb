"""What was probably meant by a text that is no sentence: one suggestion for the typical slips."""

from __future__ import annotations

from collections.abc import Callable

from flowsql_core.errors import did_you_mean
from flowsql_core.span import Source
from flowsql_grammar.lexer import BAD, Token, kinds
from flowsql_grammar.reserved import RESERVED
from flowsql_grammar.reserved_names import STRUCTURE, words_meant_as_names
from flowsql_grammar.tables import tables


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STATEMENTS = _words("SELECT INSERT CREATE ALTER DROP SHOW DESCRIBE EXPLAIN EXECUTE UPDATE DELETE USE")
_INSTEAD = {
    '"': "strings stand in single quotes, names in back-ticks",
    "!": "inequality is '<>'",
    "#": "a comment starts with --",
    "@": "there are no variables",
    "&": "AND joins conditions",
    "SAFE_CAST": "write TRY_CAST(value AS type)",
    **dict.fromkeys("‘’‚′", "typographic quotes: strings stand between plain ones, '...'"),
    **dict.fromkeys("“”„″", "typographic quotes: strings stand between plain ones, '...', names between back-ticks"),
}
_CONTEXT = 2


def hint_for(
    tokens: list[Token], index: int, source: Source, accepted: set[int], before: Callable[[], set[int]], start: str
) -> str | None:
    """A suggestion for ``tokens[index]``, which fits nowhere; None where none is likely.

    ``accepted`` are the terminals that fit there; ``before()`` those that would have fitted one token earlier;
    ``start`` is the start symbol.
    """
    token, previous = tokens[index], tokens[index - 1] if index else None
    words, whole = words_meant_as_names(tokens, index, start)
    slip = _symbol(tokens, index) or (_comma(token, previous) if previous is not None else None)
    slip = slip or _clause(tokens, index, accepted)
    if words and whole and slip is None and not any(word.text.upper() in STRUCTURE for word in words):
        return _reserved(words)
    other = slip or _bracket(tokens, index, source, accepted) or _word(token, previous, accepted)
    if words and (other is None or (whole and not _is_only_from(words, tokens))):
        return _reserved(words) if other is None or "`" in other else f"{other}; {_reserved(words)}"
    return other or _spelling(token, previous, accepted, before) or _missing_comma(token, previous, accepted)


def _is_only_from(words: list[Token], tokens: list[Token]) -> bool:
    """True if the first word is the FROM of a query."""
    texts = [token.text.upper() for token in tokens]
    return texts[0] == "SELECT" and words[0].text.upper() == "FROM" and texts.count("FROM") == 1


def _reserved(words: list[Token]) -> str:
    """Say how reserved words are written as names."""
    upper = ", ".join(dict.fromkeys(word.text.upper() for word in words))
    quoted = ", ".join(dict.fromkeys(f"`{word.text}`" for word in words))
    if "," not in upper:
        return f"{upper} is a reserved word: as a name it is written {quoted}"
    return f"{upper} are reserved words: as names they are written {quoted}"


def _symbol(tokens: list[Token], index: int) -> str | None:
    token = tokens[index]
    before = tokens[index - 1] if index else None
    if token.text.startswith("'") and before is not None and before.text.upper() == "INTO":
        return "files are written through a table: CREATE TABLE t WITH (...) AS SELECT ..."
    if token.text == "=" and before is not None and before.text in ("=", "!"):
        return "equality is a single '='" if before.text == "=" else "inequality is '<>'"
    if token.text == ":" and index + 1 < len(tokens) and tokens[index + 1].text == ":":
        return "write CAST(value AS type)"
    if before is not None and before.kind == kinds().string and before.end == token.start and token.text[0:1].isalpha():
        return "inside a string, ' is written twice: ''"
    return _INSTEAD.get(token.text.upper()) if token.kind < 0 or token.kind == BAD else None


def _comma(token: Token, previous: Token) -> str | None:
    upper = token.text.upper()
    if previous.text == "," and (token.text in (")", "]", "") or upper in STRUCTURE):
        return f"one comma too many before {token.text or 'the end'}"
    return None


def _clause(tokens: list[Token], index: int, accepted: set[int]) -> str | None:
    """Clauses that other databases write otherwise."""
    upper = tokens[index].text.upper()
    words = [token.text.upper() for token in tokens[max(0, index - _CONTEXT) : index]]
    if words and upper == "NULL" and words[-1] == "NOT" and _fits("BETWEEN", accepted):
        return "write IS NOT NULL"
    if upper == "COLUMN" and words[-1:] in (["ADD"], ["MODIFY"], ["DROP"]):
        return f"leave out COLUMN: ALTER TABLE t {words[-1]} name"
    if upper == "SYSTEM" and words[-1:] == ["CREATE"]:
        return "write CREATE TEMPORARY SYSTEM FUNCTION"
    if words[:1] == ["LIMIT"] and upper == ",":
        return "write LIMIT count OFFSET start"
    if words == ["BY", "ALL"]:
        return "GROUP BY names its columns: GROUP BY a, b"
    if words[-1:] == ["*"] and upper in ("EXCLUDE", "REPLACE", "RENAME"):
        return f"there is no * {upper}: name the columns that are wanted"
    if words == ["EXCEPT", "("] and index > _CONTEXT and tokens[index - 3].text == "*":
        return "there is no * EXCEPT: name the columns that are wanted"
    if upper == "FROM" and not words:
        return "a query begins with SELECT: SELECT * FROM t"
    if words == ["SELECT", "TOP"]:
        return "write LIMIT count at the end"
    if upper in _STATEMENTS and 0 in accepted:
        return f"a ';' is missing before {upper}"
    if words and _fits("AS", accepted) and _open_word(tokens, index) in ("CAST", "TRY_CAST"):
        return "write CAST(value AS type)"
    return None


def _bracket(tokens: list[Token], index: int, source: Source, accepted: set[int]) -> str | None:
    opened = _opened(tokens, index)
    token = tokens[index]
    if token.text == ")" and not opened:
        return "there is no '(' for this ')'"
    ends = token.kind == 0 or token.text == ")" or token.text.upper() in STRUCTURE
    if ends and _fits("END", accepted) and opened and opened[-1].text.upper() == "CASE":
        return "the CASE before it lacks its END"
    if ends and _fits(")", accepted) and opened and opened[-1].text == "(":
        line, column = source.position(opened[-1].start)
        return f"the '(' at line {line}, column {column} lacks its ')'"
    return None


def _opened(tokens: list[Token], index: int) -> list[Token]:
    """Brackets and CASEs that are open before a token."""
    opened: list[Token] = []
    for token in tokens[:index]:
        if token.text == "(" or token.text.upper() == "CASE":
            opened.append(token)
        elif opened and (
            (token.text == ")" and opened[-1].text == "(") or (token.text.upper() == "END" and opened[-1].text != "(")
        ):
            opened.pop()
    return opened


def _open_word(tokens: list[Token], index: int) -> str:
    """The word in front of the last open bracket."""
    opened = _opened(tokens, index)
    if not opened:
        return ""
    at = next(i for i, token in enumerate(tokens) if token is opened[-1])
    return tokens[at - 1].text.upper() if at else ""


def _word(token: Token, previous: Token | None, accepted: set[int]) -> str | None:
    known = kinds()
    upper = token.text.upper()
    if upper in RESERVED and known.ident in accepted:
        if upper in STRUCTURE and not (previous is not None and previous.text.upper() in ("AS", ".", "SELECT", "BY")):
            return f"something is missing before {upper}"
        return f"{upper} is a reserved word: as a name it is written `{token.text}`"
    if known.string in accepted and known.ident not in accepted and token.kind in (known.ident, *known.soft):
        return f"a string is wanted: '{token.text}'"
    return None


def _spelling(token: Token, previous: Token | None, accepted: set[int], before: Callable[[], set[int]]) -> str | None:
    known = kinds()
    display = tables().display
    words = [display[kind] for kind in accepted if kind in known.words.values()]
    if token.text[:1].isalpha() and (meant := did_you_mean(token.text, words)):
        return _in_capitals(meant)
    if previous is not None and previous.text.upper() == "IF":
        return _in_capitals(did_you_mean(token.text, ["EXISTS", "NOT"]))
    if previous is not None and previous.kind == known.ident:
        options = [display[kind] for kind in before() | accepted if kind in known.words.values()]
        return _in_capitals(did_you_mean(previous.text, options))
    return None


def _in_capitals(hint: str | None) -> str | None:
    if hint is None:
        return None
    word = hint.split("'")[1]
    return hint.replace(word, word.upper())


def _missing_comma(token: Token, previous: Token | None, accepted: set[int]) -> str | None:
    starts_item = token.text[:1].isalnum() or token.text[:1] in "'`"
    if previous is not None and starts_item and _fits(",", accepted) and token.text.upper() not in RESERVED:
        return f"is a comma missing before {token.text}?"
    return None


def _fits(text: str, accepted: set[int]) -> bool:
    known = kinds()
    return known.words.get(text, known.symbols.get(text, -9)) in accepted
