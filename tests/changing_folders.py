"""Looks through folders that a running job changes.

``Path.rglob`` fails where a folder goes between the look at its parent and the look into it (Python < 3.13).
"""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path


def files_below(folder: Path, pattern: str) -> list[Path]:
    """The files of all levels whose name is of this pattern; what goes meanwhile is left out."""
    return [
        Path(found, name) for found, _, names in os.walk(folder) for name in sorted(names) if fnmatch(name, pattern)
    ]
