"""Runs a SQL file in batch mode on the Spark that submits it.

spark-submit --master spark://host:7077 flowsql_job.py --file job.sql
"""

from __future__ import annotations

import argparse
import sys

from flowsql.cli.main import main

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", required=True, help="the statements")
    options = ["-D", "execution.runtime-mode=batch", "-D", "execution.batch.engine=spark"]
    sys.exit(main([*options, "-f", parser.parse_args().file]))
