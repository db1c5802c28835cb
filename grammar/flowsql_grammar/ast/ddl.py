"""Statements that create, alter and drop objects, as written."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from flowsql_grammar.ast.node import Identifier, Name, Node

if TYPE_CHECKING:
    from flowsql_core.graph.expectation import ViolationAction
    from flowsql_grammar.ast.expression import Expression
    from flowsql_grammar.ast.interval import IntervalLiteral
    from flowsql_grammar.ast.query import Query
    from flowsql_grammar.ast.type import TypeSpec


class Option(Node):
    """``'key' = 'value'`` of a WITH or SET clause."""

    key: str
    value: str


# Columns, keys, watermarks


class ConstraintKind(StrEnum):
    """UNIQUE parses; Flink refuses it later."""

    PRIMARY_KEY = "PRIMARY KEY"
    UNIQUE = "UNIQUE"


class Constraint(Node):
    """``[CONSTRAINT name] PRIMARY KEY [(columns)] [[NOT] ENFORCED]``; a column's own constraint names no columns."""

    kind: ConstraintKind
    columns: tuple[Name, ...] = ()
    name: Name | None = None
    enforced: bool | None = None


class Expectation(Node):
    """``CONSTRAINT name CHECK (condition) ON VIOLATION action``: what a table expects of the rows written to it."""

    name: Name
    condition: Expression
    action: ViolationAction


class PhysicalColumn(Node):
    """``name type [constraint] [COMMENT 'c']``. The name is a path where ALTER TABLE reaches into rows."""

    name: Identifier
    type: TypeSpec
    constraint: Constraint | None = None
    comment: str | None = None


class ComputedColumn(Node):
    """``name AS expression [COMMENT 'c']``."""

    name: Identifier
    expression: Expression
    comment: str | None = None


class MetadataColumn(Node):
    """``name type METADATA [FROM 'key'] [VIRTUAL] [COMMENT 'c']``."""

    name: Identifier
    type: TypeSpec
    key: str | None = None
    virtual: bool = False
    comment: str | None = None


Column: TypeAlias = "PhysicalColumn | ComputedColumn | MetadataColumn"


class Watermark(Node):
    """``WATERMARK FOR column AS expression``."""

    column: Identifier
    expression: Expression


class DistributionKind(StrEnum):
    """How rows are assigned to buckets."""

    HASH = "HASH"
    RANGE = "RANGE"


class Distribution(Node):
    """``DISTRIBUTED [BY [HASH|RANGE] (columns)] [INTO n BUCKETS]``."""

    columns: tuple[Name, ...] = ()
    kind: DistributionKind | None = None
    buckets: int | None = None


class MergeStrategy(StrEnum):
    """What LIKE does with a feature."""

    INCLUDING = "INCLUDING"
    EXCLUDING = "EXCLUDING"
    OVERWRITING = "OVERWRITING"


class LikeFeature(StrEnum):
    """What LIKE can take over."""

    ALL = "ALL"
    CONSTRAINTS = "CONSTRAINTS"
    DISTRIBUTION = "DISTRIBUTION"
    GENERATED = "GENERATED"
    METADATA = "METADATA"
    OPTIONS = "OPTIONS"
    PARTITIONS = "PARTITIONS"
    WATERMARKS = "WATERMARKS"


class LikeOption(Node):
    """``EXCLUDING OPTIONS``."""

    strategy: MergeStrategy
    feature: LikeFeature


class TableLike(Node):
    """``LIKE t [(options)]``."""

    source: Identifier
    options: tuple[LikeOption, ...] = ()


# CREATE


class CreateTable(Node):
    """``CREATE [OR REPLACE] [TEMPORARY] TABLE`` in all forms.

    ``column_names`` is the list of bare names that CREATE TABLE AS may have instead of definitions.
    """

    name: Identifier
    columns: tuple[Column, ...] = ()
    constraints: tuple[Constraint | Expectation, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    column_names: tuple[Name, ...] = ()
    comment: str | None = None
    distribution: Distribution | None = None
    partitioned_by: tuple[Name, ...] = ()
    options: tuple[Option, ...] = ()
    like: TableLike | None = None
    query: Query | None = None
    temporary: bool = False
    if_not_exists: bool = False
    replace: bool = False


class CreateView(Node):
    """``CREATE [OR REPLACE] [TEMPORARY] VIEW [IF NOT EXISTS] name [(columns)] [COMMENT 'c'] AS query``."""

    name: Identifier
    query: Query
    columns: tuple[Name, ...] = ()
    comment: str | None = None
    temporary: bool = False
    if_not_exists: bool = False
    replace: bool = False


class FunctionLanguage(StrEnum):
    """The language of a function; JAVA when none is written."""

    JAVA = "JAVA"
    SCALA = "SCALA"
    PYTHON = "PYTHON"
    SQL = "SQL"


class ResourceKind(StrEnum):
    """Kinds of resources behind USING."""

    JAR = "JAR"
    ARTIFACT = "ARTIFACT"


class Resource(Node):
    """``JAR 'path'``."""

    kind: ResourceKind
    path: str


class CreateFunction(Node):
    """``CREATE [TEMPORARY [SYSTEM]] FUNCTION [IF NOT EXISTS] name AS 'class' [LANGUAGE l] [USING ...] [WITH ()]``."""

    name: Identifier
    class_name: str
    language: FunctionLanguage | None = None
    resources: tuple[Resource, ...] = ()
    options: tuple[Option, ...] = ()
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False
    replace: bool = False


class CreateCatalog(Node):
    """``CREATE CATALOG [IF NOT EXISTS] name [COMMENT 'c'] [WITH (...)]``."""

    name: Name
    options: tuple[Option, ...] = ()
    comment: str | None = None
    if_not_exists: bool = False
    replace: bool = False


class CreateDatabase(Node):
    """``CREATE DATABASE [IF NOT EXISTS] name [COMMENT 'c'] [WITH (...)]``."""

    name: Identifier
    options: tuple[Option, ...] = ()
    comment: str | None = None
    if_not_exists: bool = False
    replace: bool = False


class CreateModel(Node):
    """``CREATE [TEMPORARY] MODEL [IF NOT EXISTS] name [INPUT (...)] [OUTPUT (...)] [COMMENT ''] WITH () [AS q]``."""

    name: Identifier
    inputs: tuple[Column, ...] = ()
    outputs: tuple[Column, ...] = ()
    options: tuple[Option, ...] = ()
    comment: str | None = None
    query: Query | None = None
    temporary: bool = False
    if_not_exists: bool = False
    replace: bool = False


class CreateConnection(Node):
    """``CREATE [TEMPORARY [SYSTEM]] CONNECTION [IF NOT EXISTS] name [COMMENT 'c'] WITH (...)``."""

    name: Identifier
    options: tuple[Option, ...] = ()
    comment: str | None = None
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False
    replace: bool = False


class RefreshMode(StrEnum):
    """How a materialized table is kept fresh."""

    CONTINUOUS = "CONTINUOUS"
    FULL = "FULL"


class StartModeKind(StrEnum):
    """Where a materialized table starts to read; RESUME_OR_* go on from a former run if there is one."""

    FROM_BEGINNING = "FROM_BEGINNING"
    FROM_NOW = "FROM_NOW"
    FROM_TIMESTAMP = "FROM_TIMESTAMP"
    RESUME_OR_FROM_BEGINNING = "RESUME_OR_FROM_BEGINNING"
    RESUME_OR_FROM_NOW = "RESUME_OR_FROM_NOW"
    RESUME_OR_FROM_TIMESTAMP = "RESUME_OR_FROM_TIMESTAMP"


class StartMode(Node):
    """``START_MODE = kind[(argument)]``: an interval before now, or a timestamp."""

    kind: StartModeKind
    argument: Expression | None = None


class CreateMaterializedTable(Node):
    """``CREATE [OR ALTER] MATERIALIZED TABLE name ... [FRESHNESS = i] [REFRESH_MODE = m] AS query``."""

    name: Identifier
    query: Query
    columns: tuple[Column, ...] = ()
    constraints: tuple[Constraint | Expectation, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    column_names: tuple[Name, ...] = ()
    comment: str | None = None
    distribution: Distribution | None = None
    partitioned_by: tuple[Name, ...] = ()
    options: tuple[Option, ...] = ()
    freshness: IntervalLiteral | None = None
    refresh_mode: RefreshMode | None = None
    start_mode: StartMode | None = None
    or_alter: bool = False


# ALTER


class PartitionEntry(Node):
    """``name = 'value'`` of a PARTITION clause; the value is None where only the name stands (dynamic)."""

    name: Name
    value: Expression | None = None


class PartitionSpec(Node):
    """``PARTITION (a = 1, b = 'x')``, with options behind it in ADD PARTITION."""

    entries: tuple[PartitionEntry, ...]
    options: tuple[Option, ...] = ()


class RenameObject(Node):
    """``RENAME TO name``."""

    name: Identifier


class RenameColumn(Node):
    """``RENAME column TO name``."""

    column: Identifier
    name: Identifier


class SetOptions(Node):
    """``SET ('k' = 'v')``."""

    options: tuple[Option, ...]


class ResetOptions(Node):
    """``RESET ('k', ...)``."""

    keys: tuple[str, ...]


class ColumnPosition(Node):
    """``FIRST``, or ``AFTER column``."""

    after: Identifier | None = None


class PositionedColumn(Node):
    """A column of ADD or MODIFY, and where it goes."""

    column: Column
    position: ColumnPosition | None = None


class AddElements(Node):
    """``ADD column``, ``ADD (columns, constraint, watermark)``, ``ADD DISTRIBUTION ...``."""

    columns: tuple[PositionedColumn, ...] = ()
    constraints: tuple[Constraint | Expectation, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    distribution: Distribution | None = None


class ModifyElements(Node):
    """The same with ``MODIFY``."""

    columns: tuple[PositionedColumn, ...] = ()
    constraints: tuple[Constraint | Expectation, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    distribution: Distribution | None = None


class DropColumns(Node):
    """``DROP column`` or ``DROP (a, b)``."""

    columns: tuple[Identifier, ...]


class DropPrimaryKey(Node):
    """``DROP PRIMARY KEY``."""


class DropConstraint(Node):
    """``DROP CONSTRAINT name``."""

    name: Name


class DropWatermark(Node):
    """``DROP WATERMARK``."""


class DropDistribution(Node):
    """``DROP DISTRIBUTION``."""


class AddPartitions(Node):
    """``ADD [IF NOT EXISTS] PARTITION (...) [WITH (...)] ...``."""

    partitions: tuple[PartitionSpec, ...]
    if_not_exists: bool = False


class DropPartitions(Node):
    """``DROP [IF EXISTS] PARTITION (...), ...``."""

    partitions: tuple[PartitionSpec, ...]
    if_exists: bool = False


class SetComment(Node):
    """``COMMENT 'c'`` of a catalog."""

    comment: str


class SetQuery(Node):
    """``AS query`` of a view or a materialized table."""

    query: Query


class SetFreshness(Node):
    """``SET FRESHNESS = INTERVAL '1' HOUR``."""

    freshness: IntervalLiteral


class SetRefreshMode(Node):
    """``SET REFRESH_MODE = FULL``."""

    refresh_mode: RefreshMode


class Suspend(Node):
    """``SUSPEND``."""


class Resume(Node):
    """``RESUME [WITH (...)]``."""

    options: tuple[Option, ...] = ()


class Refresh(Node):
    """``REFRESH [PARTITION (...)]``."""

    partition: PartitionSpec | None = None


AlterAction: TypeAlias = (
    "RenameObject | RenameColumn | SetOptions | ResetOptions | AddElements | ModifyElements | DropColumns |"
    " DropPrimaryKey | DropConstraint | DropWatermark | DropDistribution | AddPartitions | DropPartitions |"
    " SetComment | SetQuery | SetFreshness | SetRefreshMode | Suspend | Resume | Refresh"
)


class ObjectKind(StrEnum):
    """What ALTER and DROP work on."""

    TABLE = "TABLE"
    VIEW = "VIEW"
    MATERIALIZED_TABLE = "MATERIALIZED TABLE"
    CATALOG = "CATALOG"
    DATABASE = "DATABASE"
    MODEL = "MODEL"
    FUNCTION = "FUNCTION"
    CONNECTION = "CONNECTION"


class Alter(Node):
    """``ALTER kind [IF EXISTS] name action``, of everything but functions."""

    kind: ObjectKind
    name: Identifier
    action: AlterAction
    if_exists: bool = False


class AlterFunction(Node):
    """``ALTER [TEMPORARY [SYSTEM]] FUNCTION [IF EXISTS] name AS 'class' [LANGUAGE l]``."""

    name: Identifier
    class_name: str
    language: FunctionLanguage | None = None
    temporary: bool = False
    system: bool = False
    if_exists: bool = False


class Drop(Node):
    """``DROP [TEMPORARY [SYSTEM]] kind [IF EXISTS] name [RESTRICT | CASCADE]``; ``cascade`` None when not written."""

    kind: ObjectKind
    name: Identifier
    temporary: bool = False
    system: bool = False
    if_exists: bool = False
    cascade: bool | None = None


class AnalyzeTable(Node):
    """``ANALYZE TABLE t [PARTITION (...)] COMPUTE STATISTICS [FOR COLUMNS a, b | FOR ALL COLUMNS]``."""

    name: Identifier
    partition: PartitionSpec | None = None
    columns: tuple[Name, ...] = ()
    all_columns: bool = False


DdlStatement: TypeAlias = (
    "CreateTable | CreateView | CreateFunction | CreateCatalog | CreateDatabase | CreateModel | CreateConnection"
    " | CreateMaterializedTable | Alter | AlterFunction | Drop | AnalyzeTable"
)
