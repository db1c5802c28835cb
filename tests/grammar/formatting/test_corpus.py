"""Every script there is: the same trees, the same comments in order, and laid out once is laid out for good."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flowsql_grammar import parse_script, print_sql
from flowsql_grammar.formatting import comments_of, format_script
from flowsql_grammar.formatting.functions import FUNCTIONS
from tests.nightly import by_night

from .sql_texts import own_files, shared_files, texts_of

WIDTHS = (100, 40)
_FOLDED = re.compile(rf"(?i)\b({'|'.join(sorted(FUNCTIONS, key=len, reverse=True))})\b")

_COMMENTED = re.compile(
    r"(?is)'(?:[^']|'')*'|`[^`]*`|\bAS\s+\$\$.*?\$\$|(?P<comment>--[^\n]*|//[^\n]*|/\*(?!\+).*?\*/)"
)


def printed(text: str) -> list[str]:
    """The statements of a script on one line each, names of built-in functions in capitals wherever they stand."""
    return [_FOLDED.sub(lambda found: found.group().upper(), print_sql(tree)) for tree in parse_script(text)]


def commented(text: str) -> list[str]:
    """The comments of a script, found without the formatter."""
    return [found["comment"].rstrip() for found in _COMMENTED.finditer(text) if found["comment"]]


def check(file: Path, widths: tuple[int, ...] = WIDTHS) -> None:
    for text in texts_of(file):
        wanted, comments, lines = printed(text), comments_of(text), commented(text)
        for width in widths:
            made = format_script(text, width)
            assert printed(made) == wanted
            assert comments_of(made) == comments
            assert commented(made) == lines
            assert format_script(made, width) == made
            assert not re.search(r"(?m)[ \t]$", made) or re.search(r"(?m)[ \t]$", text)


def is_short(file: Path) -> bool:
    """All but the long scripts of TPC-DS, of which one runs always."""
    return file.parent.name != "tpcds" or file.name == "queries_03.sql"


@pytest.mark.parametrize(
    "file",
    by_night(own_files(), is_short),
    ids=lambda file: f"{file.parent.name}/{file.name}",
)
def test_scripts_of_this_repository(file: Path) -> None:
    check(file)


@pytest.mark.shared
@pytest.mark.skipif(not shared_files(), reason="the conformance suite is not beside the checkout")
@pytest.mark.parametrize(
    ("file", "widths"),
    [
        # Each script has one width here.
        pytest.param(file, widths, id=f"{file.parent.name}/{file.stem}-{len(widths)}", marks=marks)
        for number, file in enumerate(shared_files())
        for widths, marks in (((WIDTHS[number % 2],), ()), (WIDTHS, pytest.mark.nightly))
    ],
)
def test_shared_scripts(file: Path, widths: tuple[int, ...]) -> None:
    check(file, widths)


def test_trees_are_equal_where_functions_are_in_capitals_already() -> None:
    text = "select COUNT(*), MyFunction(a) from t as X where `b` = 'c' -- d"
    assert parse_script(format_script(text)) == parse_script(text)
