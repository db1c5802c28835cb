"""Cases in text: files and statements, and what the command says of them on standard error."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Case:
    """One case of a file of cases."""

    name: str
    files: dict[str, str] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    sql: str = ""
    told: str = ""

    def write_files(self, folder: Path) -> None:
        """The files that the statements read."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.lstrip("\n"))


def cases_of(path: Path) -> list[Case]:
    """``=== name`` begins a case, ``--- file NAME``, ``--- options``, ``--- sql`` and ``--- told`` a part of it.

    Options of the first case are for all cases; so are statements under ``--- tables``.
    """
    found: list[Case] = []
    options: list[str] = []
    tables = ""
    for text in path.read_text().split("=== ")[1:]:
        name, _, rest = text.partition("\n")
        case = Case(name)
        for part in rest.split("--- ")[1:]:
            kind, _, content = part.partition("\n")
            content = content.rstrip("\n") + "\n"
            match kind.split():
                case ["file", file]:
                    case.files[file] = content
                case ["options"]:
                    case.options = content.split()
                case ["tables"]:
                    tables = content
                case ["sql"]:
                    case.sql = content
                case ["told"]:
                    case.told = "" if content == "\n" else content
                case _:
                    raise AssertionError(f"{path.name}, {name}: what is '{kind}'?")
        options = options or case.options
        case.options = list(dict.fromkeys([*options, *case.options]))
        case.sql = tables + case.sql
        found.append(case)
    return found
