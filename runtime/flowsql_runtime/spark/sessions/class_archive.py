"""The classes that Spark starts with, as Java has parsed and verified them, in a file that Java maps (JEP 350).

``python -m flowsql_runtime.spark.prepare`` makes it; sessions that FlowSQL starts use it where it is. Java looks by
itself whether the file fits, and does without where it does not.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import Any

from flowsql_runtime.spark.sessions.java import cache_folder


def archive_path(java_home: str, pyspark: Any) -> Path:
    """Where the file of a Java and a Spark is, or would be.

    Args:
        java_home: whose classes it holds, too.
        pyspark: the package.
    """
    try:
        release = Path(java_home, "release").read_bytes()
    except OSError:
        release = b""
    parts = [os.fsencode(java_home), release, f"{pyspark.__version__} {pyspark.__file__}".encode()]
    return cache_folder() / "spark" / f"{blake2b(b'|'.join(parts), digest_size=8).hexdigest()}.jsa"


def reading_option(java_home: str, pyspark: Any) -> str:
    """The option of Java that reads the file; empty where there is none."""
    path = archive_path(java_home, pyspark)
    # Java's options travel in one text.
    return f"-XX:SharedArchiveFile={path}" if path.exists() and len(str(path).split()) == 1 else ""
