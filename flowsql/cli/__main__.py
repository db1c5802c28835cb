"""``python -m flowsql.cli`` is ``flowsql``."""

from __future__ import annotations

from flowsql.cli.process import run

if __name__ == "__main__":
    run()
