"""What sources and sinks of DataStreams have in common."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from typing import Any

from flowsql.common.typeinfo import TypeInformation
from flowsql.datastream.plan.transformations import SpecMaker


class Source(ABC):
    """Where a stream begins: ``from_source`` takes it. The job reads it, when it runs."""

    #: Whether several subtasks may read.
    parallel = False
    #: Whether it ends by itself.
    bounded = True

    @abstractmethod
    def produced_type(self) -> TypeInformation:
        """The type of its elements."""

    @abstractmethod
    def spec_maker(self) -> SpecMaker:
        """What makes the spec of the operator that reads it."""


class StreamTransformer(ABC):
    """Applies further operators to a stream."""

    @abstractmethod
    def apply(self, ds: Any) -> Any:
        """The stream behind them."""


class SupportsPreprocessing(ABC):
    """Of sinks that want a stream prepared."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """What prepares it; None for nothing."""


class Sink:
    """Base of sinks. Streams are written through tables: ``sink_to`` refuses them."""


class DeliveryGuarantee(enum.Enum):
    """What a sink promises."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2
