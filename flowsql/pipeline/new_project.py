"""A first project from a template: it runs at once, and its tests pass."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from flowsql_core.errors import BindError

TEMPLATES: Final = ("batch", "streaming")

_FOLDER: Final = Path(__file__).parent / "templates"
#: Files that version control would take for its own among the templates.
_RENAMED: Final = {"gitignore": ".gitignore"}


def make_project(folder: Path, template: str) -> list[Path]:
    """Write the files of a template, all or none.

    Args:
        folder: of the project; it is made if it is not there.
        template: one of :data:`TEMPLATES`.

    Returns:
        The files, below ``folder``.

    Raises:
        BindError: one of them is there already.
        OSError: one cannot be written.
    """
    name = re.sub(r"[^\w-]+", "-", folder.absolute().name).strip("-") or "project"
    files: dict[Path, str] = {}
    for source in sorted((_FOLDER / template).rglob("*")):
        if source.is_file():
            target = source.relative_to(_FOLDER / template)
            text = source.read_text(encoding="utf-8").replace('name = "NAME"', f'name = "{name}"')
            files[target.with_name(_RENAMED.get(target.name, target.name))] = text
    there = [str(path) for path in files if (folder / path).exists()]
    if there:
        raise BindError(
            "project-exists",
            f"'{folder}' holds {', '.join(there)} already; nothing was written.",
            hint="flowsql init makes files in an empty folder, or in one that it names: flowsql init shop",
        )
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return list(files)
