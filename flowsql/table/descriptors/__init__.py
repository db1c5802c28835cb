"""PyFlink's descriptors of Flink 1's connectors, which are deprecated: ``TableDescriptor`` makes tables."""

from flowsql.table.descriptors.rowtime import Descriptor as Descriptor
from flowsql.table.descriptors.rowtime import Rowtime as Rowtime
from flowsql.table.descriptors.schema import Schema as Schema
