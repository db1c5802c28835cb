"""``${name}`` in the text of a script: where variables stand, in front of the grammar, which knows none."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

#: Comments are left as they are; a hint is none.
_PIECE: Final = re.compile(
    r"--[^\n]*|/\*(?!\+)(?s:.)*?\*/|(?P<quoted>'[^']*(?:''[^']*)*'|`[^`]*`)|\$\{(?P<name>[A-Za-z_][\w.-]*)\}"
)
_NAME: Final = re.compile(r"\$\{([A-Za-z_][\w.-]*)\}")


def with_values(text: str, value: Callable[[str, int], str], *, quoted: bool) -> str:
    """The text with something else in place of its variables, but for those in comments.

    Args:
        text: of a script.
        value: what stands for a name at an offset of the text.
        quoted: also inside of quotes.
    """

    def piece(found: re.Match[str]) -> str:
        if found["name"] is not None:
            return value(found["name"], found.start())
        if quoted and found["quoted"] is not None:
            return _NAME.sub(lambda inner: value(inner[1], found.start() + inner.start()), found[0])
        return found[0]

    return _PIECE.sub(piece, text) if "${" in text else text
