"""``ExplainDetail``: what ``explain`` adds to the plans."""

from __future__ import annotations

import enum


class ExplainDetail(enum.Enum):
    """What ``explain`` adds to the plans."""

    ESTIMATED_COST = "ESTIMATED_COST"
    CHANGELOG_MODE = "CHANGELOG_MODE"
    JSON_EXECUTION_PLAN = "JSON_EXECUTION_PLAN"
    PLAN_ADVICE = "PLAN_ADVICE"
