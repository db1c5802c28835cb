"""psql's habits: commands with a backslash, one a line, without ``;``."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prompt_toolkit.completion import Completion

from flowsql_core.record import record

if TYPE_CHECKING:
    from flowsql.cli.shell.shell import Shell


class WrongUseError(Exception):
    """A command cannot do what was asked; the text says why."""


@record
class BackslashCommand:
    """One command. ``arguments``: how they are shown by ``\\?``. ``run`` gets the rest of the line."""

    name: str
    arguments: str
    help: str
    run: Callable[[Shell, str], None]


def run_command(shell: Shell, line: str) -> None:
    """Do what a line says; what is wrong with it is told on standard error."""
    name, _, rest = line[1:].partition(" ")
    command = COMMANDS.get(name)
    try:
        if command is None:
            from flowsql_core.errors import did_you_mean

            near = did_you_mean(name, COMMANDS)
            raise WrongUseError(
                f"There is no command '\\{name}'" + (f"; {near}".replace("'", "'\\", 1) if near else "; see \\?")
            )
        command.run(shell, rest.strip().removesuffix(";").strip())
    except WrongUseError as error:
        print(f"[ERROR] {error}", file=sys.stderr, flush=True)
    except (OSError, UnicodeDecodeError) as error:
        print(f"[ERROR] \\{name}: {error}", file=sys.stderr, flush=True)


def completions(line: str) -> Iterator[Completion]:
    """Commands that begin with what was typed, and files behind those that take one."""
    name, blank, rest = line[1:].partition(" ")
    if not blank:
        for command in COMMANDS.values():
            if command.name.startswith(name):
                yield Completion(
                    f"\\{command.name}", -len(line), f"\\{command.name} {command.arguments}", display_meta=command.help
                )
    elif name in ("i", "o", "e"):
        folder, _, begun = rest.rpartition("/")
        with contextlib.suppress(OSError):
            for path in sorted(Path(folder + "/" if folder or rest.startswith("/") else ".").expanduser().iterdir()):
                if path.name.startswith(begun):
                    yield Completion(path.name + ("/" if path.is_dir() else ""), -len(begun))


def _sql(statement: str) -> Callable[[Shell, str], None]:
    return lambda shell, rest: _run(shell, f"{statement};")


def _run(shell: Shell, text: str) -> None:
    shell.session().run_text(text)


def _list_all(shell: Shell, rest: str) -> None:
    if rest:
        _run(shell, f"DESCRIBE {rest};")
    else:
        _run(shell, "SHOW TABLES;")


def _with_definition(shell: Shell, rest: str) -> None:
    if not rest:
        raise WrongUseError("\\d+ takes the name of a table or a view")
    environment = shell.session().environment
    if shell.session().run_text(f"DESCRIBE {rest};") is None:
        kind = "VIEW" if rest in environment.list_views() else "TABLE"
        shell.session().out.write(environment.execute_sql(f"SHOW CREATE {kind} {rest}").text().rstrip() + "\n")


def _tables_alone(shell: Shell, rest: str) -> None:
    environment = shell.session().environment
    views = set(environment.list_views())
    _names(shell, "table name", [name for name in environment.list_tables() if name not in views], rest)


def _names(shell: Shell, head: str, names: list[str], part: str) -> None:
    _listed(shell, (head,), [(name,) for name in names], part)


def _listed(shell: Shell, heads: tuple[str, ...], rows: list[tuple[str, ...]], part: str) -> None:
    """Show the rows whose name has a part."""
    from flowsql.cli.render.base import Limits
    from flowsql.table.table_result import listing
    from flowsql_core.types.logical import STRING, Column

    schema = tuple(Column(head, STRING) for head in heads)
    found = listing(schema, [row for row in rows if part.lower() in row[0].lower()])
    shell.session().renderer().answer(found, Limits(), time.monotonic())


def _views(shell: Shell, rest: str) -> None:
    _names(shell, "view name", shell.session().environment.list_views(), rest)


def _functions(shell: Shell, rest: str) -> None:
    from flowsql.completion.complete import built_in_functions

    own = [(name, "function of the user") for name in shell.session().environment.list_user_defined_functions()]
    _listed(shell, ("function name", "takes"), [*own, *built_in_functions().items()], rest)


def _use(shell: Shell, rest: str) -> None:
    if not rest:
        environment = shell.session().environment
        print(f"{environment.get_current_catalog()}.{environment.get_current_database()}")
        return
    _run(shell, f"USE {rest};")


def _switched(word: str, now: bool, command: str) -> bool:
    """The state that ``on``, ``off`` or nothing asks for."""
    if word not in ("", "on", "off"):
        raise WrongUseError(f"\\{command} takes 'on', 'off' or nothing, which switches, not '{word}'")
    return not now if not word else word == "on"


def _timing(shell: Shell, rest: str) -> None:
    from flowsql.cli.options import PRINT_TIME_COST

    now = _switched(rest, shell.configuration.get(PRINT_TIME_COST), "timing")
    shell.configuration.set(PRINT_TIME_COST.key, str(now).lower())
    print(f"Timing is {'on' if now else 'off'}.")


def _expanded(shell: Shell, rest: str) -> None:
    session = shell.session()
    now = _switched(rest, session.form == "vertical", "x")
    session.form = "vertical" if now else "tableau"
    print(f"Expanded display is {'on' if now else 'off'}.")


def _format(shell: Shell, rest: str) -> None:
    from flowsql.cli.render.forms import FORMS

    if rest and rest not in FORMS:
        raise WrongUseError(f"there is no format '{rest}'; take one of {', '.join(FORMS)}")
    session = shell.session()
    session.form = rest or session.form
    print(f"Format is {session.form}.")


def _include(shell: Shell, rest: str) -> None:
    from flowsql.cli.session import StatementFailedError
    from flowsql.cli.start import read_script
    from flowsql_core.span import Source

    if not rest:
        raise WrongUseError("\\i takes the name of a file")
    name = os.path.expanduser(rest)
    source = Source(read_script(name), rest)
    with contextlib.suppress(StatementFailedError):
        shell.session().run(source)


def _output(shell: Shell, rest: str) -> None:
    shell.session().write_to(rest or None)


def _again(shell: Shell, rest: str) -> None:
    if not shell.last_text:
        raise WrongUseError("nothing has run yet")
    shell.answer(shell.last_text)


def _watch(shell: Shell, rest: str) -> None:
    try:
        seconds = float(rest or 2)
    except ValueError:
        raise WrongUseError(f"\\watch takes a number of seconds, not '{rest}'") from None
    if not seconds > 0:
        raise WrongUseError("\\watch takes a number of seconds above zero")
    if not shell.last_text:
        raise WrongUseError("\\watch repeats the statement that ran last, and nothing has run yet")
    while True:
        print(f"{time.strftime('%a %d %b %Y %H:%M:%S')} (every {seconds:g} s, Ctrl-C ends)")
        if not shell.session().run_watched(shell.last_text):
            return
        time.sleep(seconds)


def _top(shell: Shell, rest: str) -> None:
    from flowsql.cli.live.screen import show_top
    from flowsql.jobs.everywhere import resolved_id
    from flowsql_core.errors import FlowSqlError

    try:
        show_top(resolved_id(rest) if rest else None, interval_s=1.0)
    except FlowSqlError as error:
        raise WrongUseError(error.render()) from None


def _edit(shell: Shell, rest: str) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    if rest:
        path, is_own = Path(rest).expanduser(), False
    else:
        handle, name = tempfile.mkstemp(prefix="flowsql-shell-", suffix=".sql")
        with open(handle, "w", encoding="utf-8") as file:
            file.write(shell.last_text)
        path, is_own = Path(name), True
    try:
        done = subprocess.run([*shlex.split(editor), str(path)], check=False)
        if done.returncode:
            raise WrongUseError(f"\\e: {editor} ended with {done.returncode}; EDITOR names another one")
        shell.to_edit = path.read_text(encoding="utf-8").rstrip()
    finally:
        if is_own:
            path.unlink(missing_ok=True)


def _shell(shell: Shell, rest: str) -> None:
    subprocess.run(rest or os.environ.get("SHELL", "/bin/sh"), shell=True, check=False)


def _print_last(shell: Shell, rest: str) -> None:
    print(shell.last_text or "Nothing has run yet.")


def _quit(shell: Shell, rest: str) -> None:
    shell.answer("QUIT;")


def _help(shell: Shell, rest: str) -> None:
    shown = [(f"\\{command.name} {command.arguments}".rstrip(), command.help) for command in COMMANDS.values()]
    width = max(len(left) for left, _ in shown)
    shell.session().out.write("".join(f"{left.ljust(width)}  {help_}\n" for left, help_ in shown))
    shell.session().out.flush()


COMMANDS: Final = {
    command.name: command
    for command in (
        BackslashCommand("?", "", "this list", _help),
        BackslashCommand("q", "", "leave, as QUIT", _quit),
        BackslashCommand("d", "[NAME]", "tables and views; with a name its columns", _list_all),
        BackslashCommand("d+", "NAME", "the columns and the statement that makes it", _with_definition),
        BackslashCommand("dt", "[PART]", "tables", _tables_alone),
        BackslashCommand("dv", "[PART]", "views", _views),
        BackslashCommand("df", "[PART]", "functions", _functions),
        BackslashCommand("l", "", "databases of the catalog", _sql("SHOW DATABASES")),
        BackslashCommand("c", "[[CATALOG.]DATABASE]", "the database in use; with a name another one", _use),
        BackslashCommand("g", "", "run the last statement again", _again),
        BackslashCommand("watch", "[SECONDS]", "run it again and again, every 2 seconds", _watch),
        BackslashCommand("top", "[JOB]", "running jobs on a screen, those of this shell among them", _top),
        BackslashCommand("e", "[FILE]", "edit it (or a file) with $EDITOR and put it at the prompt", _edit),
        BackslashCommand("p", "", "print it", _print_last),
        BackslashCommand("i", "FILE", "run a file of statements", _include),
        BackslashCommand("o", "[FILE | |COMMAND]", "answers to a file or a command; without one back here", _output),
        BackslashCommand("timing", "[on|off]", "the seconds of a query behind its row count", _timing),
        BackslashCommand("x", "[on|off]", "rows a line a column; \\gx in place of ';' does so once", _expanded),
        BackslashCommand("format", "[NAME]", "how answers look: tableau, vertical, markdown, csv, jsonl", _format),
        BackslashCommand("!", "[COMMAND]", "run a command of the system, or its shell", _shell),
    )
}
