"""``InputDependencyConstraint``, under the name of PyFlink's module."""

from __future__ import annotations

import enum


class InputDependencyConstraint(enum.Enum):
    """When a task may start. Nothing takes one, in PyFlink neither: tasks of a stream start together."""

    ANY = 0
    ALL = 1
