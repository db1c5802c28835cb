"""What sources and sinks of DataStreams have in common."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from typing import Any

from flowsql.common.typeinfo import TypeInformation
from flowsql.datastream.plan.operators import BatchMap
from flowsql.datastream.plan.transformations import SpecMaker
from flowsql_core.graph.specs import SinkSpec


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

    def values_of_columns(self) -> BatchMap | None:
        """What makes values, with their timestamps, of the columns that the operator gives; None: it gives values."""
        return None


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


class Sink(ABC):
    """Where a stream ends: ``sink_to`` takes it."""

    @abstractmethod
    def columns_of_values(self, type_: TypeInformation) -> BatchMap:
        """What makes the columns that the sink writes of values of a type."""

    @abstractmethod
    def spec(self) -> SinkSpec:
        """The operator that writes them."""


class SinkFunctionOf:
    """What ``add_sink`` takes: a sink under the name of an older one."""

    def __init__(self, written_by: Sink) -> None:
        self.written_by = written_by


class DeliveryGuarantee(enum.Enum):
    """What a sink promises."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2
