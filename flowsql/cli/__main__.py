"""``python -m flowsql.cli`` is ``flowsql``."""

from __future__ import annotations

import sys

from flowsql.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
