"""From rules of the grammar to nodes: a method for each rule or alias of ``sql.lark``.

A method takes the span of what was read and the children that the grammar keeps (keywords and punctuation are
dropped). Text that no rule can tell from a valid one is refused here, with its place.
"""

from flowsql_grammar.build.builder import builders as builders
from flowsql_grammar.build.builder import method as method
