"""The words of ``flowsql lint``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import PROJECT_AROUND, Parser, add_profile, add_session

FORMATS = ("text", "json", "github")


@dataclass(frozen=True, slots=True)
class LintInvocation:
    """``flowsql lint``: ``paths`` are scripts, folders, or '-'; none: the project around.

    ``lists_rules``: nothing is linted.
    """

    paths: tuple[str, ...]
    profile: str | None
    lists_rules: bool
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    format: str
    init: str | None
    settings: tuple[tuple[str, str], ...]


def parse(words: Sequence[str]) -> LintInvocation:
    """Read the words behind ``flowsql lint``, as :func:`.script.parse` does those of a script."""
    parser = Parser(
        prog="flowsql lint",
        description="Find in scripts what bites: state that grows for ever, windows without watermarks, keys that "
        "change, and more. Definitions and SET of a script take effect while it is read; no job runs.",
        epilog="exit codes: 0 nothing found, 1 findings, 2 usage error. '-- flowsql: ignore[RULE, ...]' on a line, or "
        "in front of a statement, switches rules off there; '-- flowsql: ignore-file[RULE, ...]' does in a file.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    what = f"a script, a folder, or '-' for standard input; {PROJECT_AROUND}"
    add("paths", metavar="PATH", nargs="*", help=what)
    add_profile(parser)
    add("--rules", action="store_true", help="list the rules")
    add("--select", metavar="RULES", type=_names, action="extend", default=[], help="only these, with commas between")
    add("--ignore", metavar="RULES", type=_names, action="extend", default=[], help="not these, with commas between")
    add("--format", choices=FORMATS, default=FORMATS[0], help="how findings are printed (default: %(default)s)")
    add_session(parser)
    found = parser.parse_args(list(words))
    return LintInvocation(
        tuple(found.paths),
        found.profile,
        found.rules,
        tuple(found.select),
        tuple(found.ignore),
        found.format,
        found.init,
        tuple(found.settings or ()),
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
