"""Comments and blanks at random places of random statements: none is lost, nothing else changes."""

from __future__ import annotations

import os
import random

from flowsql_core.errors import ParseError
from flowsql_core.span import Source
from flowsql_grammar import parse_script
from flowsql_grammar.formatting import format_script
from flowsql_grammar.formatting.script import Script, normalised
from flowsql_grammar.lexer import tokenize

from .sql_texts import statements
from .test_corpus import printed

GAPS = (
    *("\n", "  ", "\t", "\n\n", "\n\n\n", "\r\n-- {}\r\n", "/* {} */", " /* {} */ ", " -- {}\n", "\n-- {}\n"),
    *(
        "\n\n-- {}\n\n",
        "\n    -- {}\n",
        "\n/* {}\n   two */\n",
        " -- {}\n-- two {}\n",
        " /* {} */ -- two {}\n",
        " // {}\n",
    ),
)


def woven(text: str, rng: random.Random) -> str:
    """The text with something more between one token in four and the next."""
    made: list[str] = []
    at = 0
    for number, token in enumerate(tokenize(Source(text))[:-1]):
        gap = text[at : token.start]
        if rng.random() < 0.25 and not gap.strip():
            more = rng.choice(GAPS).replace("{}", f"{number}")
            gap = gap + more if rng.random() < 0.5 else more + gap
        made += [gap, text[token.start : token.end]]
        at = token.end
    return "".join([*made, text[at:]])


def in_order(text: str) -> list[str]:
    """Tokens and comments as they follow each other, but for commas and semicolons, which comments may pass."""
    script = Script(normalised(text))
    found: list[str] = []
    for leaf in script.leaves:
        found += [one.text for one in leaf.before]
        found += [] if leaf.text in (",", ";") else [leaf.text.upper()]
        found += [one.text for one in leaf.after]
    return [*found, *(one.text for one in script.rest)]


def test_comments_at_random_places() -> None:
    """FLOWSQL_FUZZ sets the number of scripts."""
    rng = random.Random(5)
    known = statements()
    formatted = 0
    for _ in range(int(os.environ.get("FLOWSQL_FUZZ", "250"))):
        text = "; ".join(rng.choices(known, k=rng.choice((1, 1, 2, 3)))) + rng.choice(("", ";"))
        wild = woven(text, rng)
        try:
            # Blanks within what is one token together, as ``= >`` for ``=>``, make another text.
            if parse_script(wild) != parse_script(text):
                continue
        except ParseError:
            continue
        width = rng.choice((20, 40, 80, 100))
        made = format_script(wild, width)
        assert printed(made) == printed(text), wild
        assert in_order(made) == in_order(wild), wild
        assert format_script(made, width) == made, wild
        formatted += 1
    assert formatted > 100
