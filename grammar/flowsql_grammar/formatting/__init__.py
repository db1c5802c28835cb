"""SQL laid out as people like to read it, with the same tree and the same comments.

``concrete`` makes the tree of all tokens; ``layout`` and the modules of its kind say how each rule of the grammar
looks; ``document`` breaks lines, ``script`` puts statements together and checks what came out.
"""

from __future__ import annotations

from flowsql_grammar.formatting.script import DEFAULT_WIDTH, comments_of, format_script

__all__ = ["DEFAULT_WIDTH", "comments_of", "format_script"]
