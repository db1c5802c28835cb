"""How a function is written in Spark SQL: a template where Spark answers the same, else why it has none.

``{0}`` is the first argument, ``{1..., }`` all from the second on with ``, `` between them, ``{unit}`` an option.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from flowsql_core.record import record

_HOLE = re.compile(r"\{(?:(\d*)(?:(\.\.\.)([^}]*))?|([a-z_]+))\}")


@record
class NoSparkForm:
    """Why a function has no Spark SQL text of its own. ``by_kernel``: FlowSQL's kernel may run there instead."""

    reason: str
    by_kernel: bool = True


#: The usual reason: names that look alike differ in NULLs, types, patterns or errors.
BY_KERNEL = NoSparkForm("Spark has no expression with the same answers; FlowSQL's kernel runs there")
#: Depends on the running job, not on its rows.
BY_JOB = NoSparkForm("depends on the job that runs it: clock, watermark, session", by_kernel=False)

SparkForm = str | NoSparkForm


def spark_text(template: str, args: Sequence[str], options: Sequence[tuple[str, Any]] = ()) -> str:
    """A template over arguments that are already Spark SQL.

    >>> spark_text("CONCAT({..., })", ["a", "b"])
    'CONCAT(a, b)'
    >>> spark_text("({0} IN ({1..., }))", ["a", "1", "2"])
    '(a IN (1, 2))'
    """

    def fill(hole: re.Match[str]) -> str:
        number, many, between, option = hole.groups()
        if option is not None:
            return str(dict(options)[option])
        return between.join(args[int(number or 0) :]) if many else args[int(number)]

    return _HOLE.sub(fill, template)


def arguments_of(template: str) -> frozenset[int]:
    """Positions of the arguments that a template names one by one."""
    return frozenset(int(hole[1]) for hole in _HOLE.finditer(template) if hole[1])
