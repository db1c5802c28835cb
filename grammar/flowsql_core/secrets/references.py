"""What refers to a secret: ``${env:NAME}`` and ``${file:PATH}``."""

from __future__ import annotations

import re
from typing import Final

PLACEHOLDER: Final = re.compile(r"\$\{(env|file):([^{}]*)\}")


def has_placeholder(text: str) -> bool:
    """Whether there is something to fill in."""
    return "${" in text and PLACEHOLDER.search(text) is not None


def is_placeholder(text: str) -> bool:
    """Whether there is nothing else."""
    return PLACEHOLDER.fullmatch(text) is not None
