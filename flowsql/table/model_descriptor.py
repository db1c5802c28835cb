"""Models, which FlowSQL does not run yet."""

from __future__ import annotations

from flowsql.common.refused import Refused


class ModelDescriptor(metaclass=Refused, construct="models", hint=None):
    """A model before it is made."""
