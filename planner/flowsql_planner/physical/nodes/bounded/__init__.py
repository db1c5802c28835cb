"""Physical nodes of batch mode under Flink's names: insert-only inputs, one answer at their end."""

from flowsql_planner.physical.nodes.bounded.aggregate import BoundedAggregate as BoundedAggregate
from flowsql_planner.physical.nodes.bounded.aggregate import PandasAggregate as PandasAggregate
from flowsql_planner.physical.nodes.bounded.distinct import DistinctAggregate as DistinctAggregate
from flowsql_planner.physical.nodes.bounded.join import BoundedJoin as BoundedJoin
from flowsql_planner.physical.nodes.bounded.join import JoinAlgorithm as JoinAlgorithm
from flowsql_planner.physical.nodes.bounded.over import BoundedOver as BoundedOver
from flowsql_planner.physical.nodes.bounded.over import PandasOver as PandasOver
from flowsql_planner.physical.nodes.bounded.sort import BoundedSort as BoundedSort
from flowsql_planner.physical.nodes.bounded.window import GroupWindowAggregate as GroupWindowAggregate
