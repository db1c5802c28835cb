"""Tree to SQL text, by construct; :mod:`flowsql_grammar.printer` is the way in."""
