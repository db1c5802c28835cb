"""Write down the options of each command, as its parser declares them: ``python docs/make_commands.py``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

from flowsql.cli.arguments.parser import Parser
from flowsql.cli.main import COMMANDS

PAGE = Path(__file__).resolve().parent / "reference" / "commands.md"


class _MadeError(Exception):
    """Carries a parser that is about to read."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser


def parsers() -> Iterator[Parser]:
    """The parser of ``flowsql`` itself, then of each command, and of what a command can do."""

    def caught(parser: Parser, args: Sequence[str] | None = None, namespace: Any = None) -> NoReturn:
        raise _MadeError(parser)

    for name in ("script", *COMMANDS):
        with patch.object(Parser, "parse_args", caught):
            try:
                import_module(f"flowsql.cli.arguments.{name}").parse([])
            except _MadeError as made:
                parser = made.parser
            else:
                raise AssertionError(f"flowsql {name} reads its words without a Parser")
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices.values()


def render() -> str:
    """The page of commands."""
    parts = ["# Commands\n\nWritten by `docs/make_commands.py` from the parsers. What they do: [cli.md](../cli.md).\n"]
    for parser in parsers():
        assert parser.description is not None, f"{parser.prog} has no description"
        parts.append(f"\n## {parser.prog}\n\n{_text(parser.description)}\n\n| | |\n|---|---|\n")
        parts.extend(_row(parser, action) for action in parser._actions)
        if parser.epilog is not None:
            parts.append(f"\n{_text(parser.epilog[0].upper() + parser.epilog[1:])}\n")
    return "".join(parts)


def _row(parser: Parser, action: argparse.Action) -> str:
    if isinstance(action, argparse._SubParsersAction):
        return f"| `{action.metavar}` | {', '.join(action.choices)}: see below |\n"
    assert action.help is not None, f"{parser.prog}: {action.option_strings or action.dest} has no help"
    words = action.option_strings or [""]
    value = _value(action)
    forms = ", ".join(f"`{f'{word} {value}'.strip()}`" for word in words)
    return f"| {forms} | {_text(parser._get_formatter()._expand_help(action))} |\n"


def _value(action: argparse.Action) -> str:
    """What stands behind an option, or where no option is."""
    if action.nargs == 0:
        return ""
    name = str(action.metavar or "\\|".join(map(str, action.choices or ())) or action.dest.upper())
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} ..."}.get(str(action.nargs), name)


def _text(text: str) -> str:
    """A text of a parser as one that Markdown leaves alone."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
