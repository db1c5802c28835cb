"""Packages that a program brings along for its functions: installed into a folder of their own."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile

from flowsql_core.errors import BindError


def install_requirements(file: str, cache: str | None) -> str:
    """Install packages with pip into a new folder, which joins ``sys.path`` in front and goes with the process.

    Modules that are imported already stay what they are.

    Args:
        file: of requirements, as pip reads it.
        cache: a folder of packages; with it nothing is downloaded.

    Returns:
        The folder.

    Raises:
        BindError: there is no such file or folder, or pip fails.
    """
    if not os.path.isfile(file):
        raise BindError("python-file-not-found", f"There is no file of requirements '{file}'.")
    if cache is not None and not os.path.isdir(cache):
        raise BindError("python-file-not-found", f"There is no folder of packages '{cache}'.")
    folder = tempfile.mkdtemp(prefix="flowsql-requirements-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder]
    if cache is not None:
        command += ["--no-index", "--find-links", cache]
    done = subprocess.run([*command, "-r", file], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise BindError(
            "python-requirements",
            f"pip cannot install the requirements of '{file}': {' '.join(lines[-3:])[:600]}",
            hint="with a folder of packages as the second argument nothing is downloaded",
        )
    sys.path.insert(0, folder)
    return folder


def check_interpreter(path: str, method: str) -> None:
    """Refuse another Python than the one that runs the program.

    Raises:
        BindError: it is another one.
    """
    if os.path.exists(path) and os.path.samefile(path, sys.executable):
        return
    raise BindError(
        "no-effect",
        f"{method} has no effect: functions run with the Python of this program, {sys.executable}.",
        hint="start this program with that interpreter",
    )
