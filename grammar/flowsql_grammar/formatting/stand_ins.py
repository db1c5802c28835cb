"""``${name}`` outside of quotes, where the grammar has no place for it: names of the same length stand in for it."""

from __future__ import annotations

from flowsql_core.errors import ParseError
from flowsql_core.span import Span
from flowsql_grammar.variables import with_values


class StandIns:
    """A text without variables, in which every other character stands where it was.

    ``text``: names in their place; they are such as the script does not hold.
    """

    def __init__(self, text: str) -> None:
        self._variables: dict[str, tuple[str, int]] = {}
        self._original = text
        self.text = with_values(text, self._stand_in, quoted=False)

    def _stand_in(self, name: str, at: int) -> str:
        variable = "${" + name + "}"
        number = len(self._variables)
        while True:
            made = "z" + f"{number:x}".rjust(len(variable) - 1, "_")
            if made not in self._original and made not in self._variables:
                self._variables[made] = variable, at
                return made
            number += 1

    def put_back(self, text: str) -> str:
        """A text that was made of the other one, with its variables.

        Raises:
            ParseError: one stands where a name does not stay as it is.
        """
        for made, (variable, at) in self._variables.items():
            if text.count(made) != 1:
                span = Span(at, at + len(variable))
                raise ParseError("misplaced-variable", f"{variable} cannot be formatted in this place.", span)
        return self.shown(text)

    def shown(self, text: str) -> str:
        """The same of a text to be shown, which may hold each of them any number of times."""
        for made, (variable, _) in self._variables.items():
            text = text.replace(made, variable)
        return text
