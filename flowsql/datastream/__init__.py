"""The DataStream API: ``pyflink.datastream`` becomes ``flowsql.datastream``. Names load when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql.lazy import lazy_names

if TYPE_CHECKING:
    from flowsql.datastream.async_data_stream import AsyncDataStream as AsyncDataStream
    from flowsql.datastream.async_data_stream import AsyncFunction as AsyncFunction
    from flowsql.datastream.async_data_stream import AsyncRetryPredicate as AsyncRetryPredicate
    from flowsql.datastream.async_data_stream import AsyncRetryStrategy as AsyncRetryStrategy
    from flowsql.datastream.checkpoint_config import CheckpointConfig as CheckpointConfig
    from flowsql.datastream.checkpoint_storage import CheckpointStorage as CheckpointStorage
    from flowsql.datastream.checkpoint_storage import CustomCheckpointStorage as CustomCheckpointStorage
    from flowsql.datastream.checkpoint_storage import FileSystemCheckpointStorage as FileSystemCheckpointStorage
    from flowsql.datastream.checkpoint_storage import JobManagerCheckpointStorage as JobManagerCheckpointStorage
    from flowsql.datastream.checkpointing_mode import CheckpointingMode as CheckpointingMode
    from flowsql.datastream.connected_streams import BroadcastConnectedStream as BroadcastConnectedStream
    from flowsql.datastream.connected_streams import BroadcastStream as BroadcastStream
    from flowsql.datastream.connected_streams import ConnectedStreams as ConnectedStreams
    from flowsql.datastream.data_stream import DataStream as DataStream
    from flowsql.datastream.data_stream import KeyedStream as KeyedStream
    from flowsql.datastream.data_stream_sink import DataStreamSink as DataStreamSink
    from flowsql.datastream.execution_mode import RuntimeExecutionMode as RuntimeExecutionMode
    from flowsql.datastream.externalized_checkpoint_retention import (
        ExternalizedCheckpointRetention as ExternalizedCheckpointRetention,
    )
    from flowsql.datastream.functions import SinkFunction as SinkFunction
    from flowsql.datastream.functions import SourceFunction as SourceFunction
    from flowsql.datastream.slot_sharing_group import MemorySize as MemorySize
    from flowsql.datastream.slot_sharing_group import SlotSharingGroup as SlotSharingGroup
    from flowsql.datastream.state_backend import CustomStateBackend as CustomStateBackend
    from flowsql.datastream.state_backend import EmbeddedRocksDBStateBackend as EmbeddedRocksDBStateBackend
    from flowsql.datastream.state_backend import HashMapStateBackend as HashMapStateBackend
    from flowsql.datastream.state_backend import PredefinedOptions as PredefinedOptions
    from flowsql.datastream.state_backend import StateBackend as StateBackend
    from flowsql.datastream.stream_execution_environment import StreamExecutionEnvironment as StreamExecutionEnvironment
    from flowsql.datastream.windowed_stream import AllWindowedStream as AllWindowedStream
    from flowsql.datastream.windowed_stream import WindowedStream as WindowedStream
    from flowsql_core.stream.broadcast_functions import BroadcastProcessFunction as BroadcastProcessFunction
    from flowsql_core.stream.broadcast_functions import KeyedBroadcastProcessFunction as KeyedBroadcastProcessFunction
    from flowsql_core.stream.functions import AggregateFunction as AggregateFunction
    from flowsql_core.stream.functions import CoFlatMapFunction as CoFlatMapFunction
    from flowsql_core.stream.functions import CoMapFunction as CoMapFunction
    from flowsql_core.stream.functions import CoProcessFunction as CoProcessFunction
    from flowsql_core.stream.functions import FilterFunction as FilterFunction
    from flowsql_core.stream.functions import FlatMapFunction as FlatMapFunction
    from flowsql_core.stream.functions import KeyedCoProcessFunction as KeyedCoProcessFunction
    from flowsql_core.stream.functions import KeyedProcessFunction as KeyedProcessFunction
    from flowsql_core.stream.functions import KeySelector as KeySelector
    from flowsql_core.stream.functions import MapFunction as MapFunction
    from flowsql_core.stream.functions import Partitioner as Partitioner
    from flowsql_core.stream.functions import ProcessFunction as ProcessFunction
    from flowsql_core.stream.functions import ProcessWindowFunction as ProcessWindowFunction
    from flowsql_core.stream.functions import ReduceFunction as ReduceFunction
    from flowsql_core.stream.functions import RuntimeContext as RuntimeContext
    from flowsql_core.stream.functions import WindowFunction as WindowFunction
    from flowsql_core.stream.output_tag import OutputTag as OutputTag
    from flowsql_core.stream.timer import TimeDomain as TimeDomain
    from flowsql_core.stream.timer import TimerService as TimerService
    from flowsql_core.stream.window import CountWindow as CountWindow
    from flowsql_core.stream.window import GlobalWindow as GlobalWindow
    from flowsql_core.stream.window import MergingWindowAssigner as MergingWindowAssigner
    from flowsql_core.stream.window import TimeWindow as TimeWindow
    from flowsql_core.stream.window import Trigger as Trigger
    from flowsql_core.stream.window import TriggerResult as TriggerResult
    from flowsql_core.stream.window import Window as Window
    from flowsql_core.stream.window import WindowAssigner as WindowAssigner

_HOMES = {
    "AggregateFunction": "flowsql_core.stream.functions",
    "AllWindowedStream": "flowsql.datastream.windowed_stream",
    "AsyncDataStream": "flowsql.datastream.async_data_stream",
    "AsyncFunction": "flowsql.datastream.async_data_stream",
    "AsyncRetryPredicate": "flowsql.datastream.async_data_stream",
    "AsyncRetryStrategy": "flowsql.datastream.async_data_stream",
    "BroadcastConnectedStream": "flowsql.datastream.connected_streams",
    "BroadcastProcessFunction": "flowsql_core.stream.broadcast_functions",
    "BroadcastStream": "flowsql.datastream.connected_streams",
    "CheckpointConfig": "flowsql.datastream.checkpoint_config",
    "CheckpointStorage": "flowsql.datastream.checkpoint_storage",
    "CheckpointingMode": "flowsql.datastream.checkpointing_mode",
    "CoFlatMapFunction": "flowsql_core.stream.functions",
    "CoMapFunction": "flowsql_core.stream.functions",
    "CoProcessFunction": "flowsql_core.stream.functions",
    "ConnectedStreams": "flowsql.datastream.connected_streams",
    "CountWindow": "flowsql_core.stream.window",
    "CustomCheckpointStorage": "flowsql.datastream.checkpoint_storage",
    "CustomStateBackend": "flowsql.datastream.state_backend",
    "DataStream": "flowsql.datastream.data_stream",
    "DataStreamSink": "flowsql.datastream.data_stream_sink",
    "EmbeddedRocksDBStateBackend": "flowsql.datastream.state_backend",
    "ExternalizedCheckpointRetention": "flowsql.datastream.externalized_checkpoint_retention",
    "FileSystemCheckpointStorage": "flowsql.datastream.checkpoint_storage",
    "FilterFunction": "flowsql_core.stream.functions",
    "FlatMapFunction": "flowsql_core.stream.functions",
    "GlobalWindow": "flowsql_core.stream.window",
    "HashMapStateBackend": "flowsql.datastream.state_backend",
    "JobManagerCheckpointStorage": "flowsql.datastream.checkpoint_storage",
    "KeySelector": "flowsql_core.stream.functions",
    "KeyedBroadcastProcessFunction": "flowsql_core.stream.broadcast_functions",
    "KeyedCoProcessFunction": "flowsql_core.stream.functions",
    "KeyedProcessFunction": "flowsql_core.stream.functions",
    "KeyedStream": "flowsql.datastream.data_stream",
    "MapFunction": "flowsql_core.stream.functions",
    "MemorySize": "flowsql.datastream.slot_sharing_group",
    "MergingWindowAssigner": "flowsql_core.stream.window",
    "OutputTag": "flowsql_core.stream.output_tag",
    "Partitioner": "flowsql_core.stream.functions",
    "PredefinedOptions": "flowsql.datastream.state_backend",
    "ProcessFunction": "flowsql_core.stream.functions",
    "ProcessWindowFunction": "flowsql_core.stream.functions",
    "ReduceFunction": "flowsql_core.stream.functions",
    "RuntimeContext": "flowsql_core.stream.functions",
    "RuntimeExecutionMode": "flowsql.datastream.execution_mode",
    "SinkFunction": "flowsql.datastream.functions",
    "SlotSharingGroup": "flowsql.datastream.slot_sharing_group",
    "SourceFunction": "flowsql.datastream.functions",
    "StateBackend": "flowsql.datastream.state_backend",
    "StreamExecutionEnvironment": "flowsql.datastream.stream_execution_environment",
    "TimeDomain": "flowsql_core.stream.timer",
    "TimeWindow": "flowsql_core.stream.window",
    "TimerService": "flowsql_core.stream.timer",
    "Trigger": "flowsql_core.stream.window",
    "TriggerResult": "flowsql_core.stream.window",
    "Window": "flowsql_core.stream.window",
    "WindowAssigner": "flowsql_core.stream.window",
    "WindowFunction": "flowsql_core.stream.functions",
    "WindowedStream": "flowsql.datastream.windowed_stream",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
