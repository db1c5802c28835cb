"""``flowsql init``: a project that runs at once."""

from __future__ import annotations

import sys
from pathlib import Path

from flowsql.cli.arguments.init import InitInvocation
from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK
from flowsql.pipeline.new_project import make_project
from flowsql_core.errors import FlowSqlError


def run(invocation: InitInvocation) -> int:
    """Write the files, and say what comes next; the exit code."""
    folder = Path(invocation.folder)
    try:
        files = make_project(folder, invocation.template)
    except FlowSqlError as error:
        print(f"flowsql: error: {error.render()}", file=sys.stderr)
        return EXIT_FAILED
    except OSError as error:
        print(f"flowsql: error: cannot write '{error.filename}': {error.strerror}", file=sys.stderr)
        return EXIT_FAILED
    print(f"Made {len(files)} files in '{invocation.folder}':")
    print("\n".join(f"  {path}" for path in files))
    print("\nNext:")
    if folder.absolute() != Path.cwd():
        print(f"  cd {invocation.folder}")
    print("  flowsql run --dry-run   the order of its statements, and why each would run")
    print("  flowsql run             run them")
    print("  flowsql test            run its tests")
    return EXIT_OK
