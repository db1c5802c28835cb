"""The syntax tree of Flink SQL. ``from flowsql_grammar import ast``, then ``ast.Select``, ``ast.CreateTable``, ...

A module of nodes is imported when one of its names is first asked for: an ordinary statement needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql_grammar.ast.lazy import lazy_names

if TYPE_CHECKING:
    from flowsql_grammar.ast.call import *  # noqa: F403
    from flowsql_grammar.ast.ddl import *  # noqa: F403
    from flowsql_grammar.ast.expression import *  # noqa: F403
    from flowsql_grammar.ast.inspection import *  # noqa: F403
    from flowsql_grammar.ast.interval import *  # noqa: F403
    from flowsql_grammar.ast.json import *  # noqa: F403
    from flowsql_grammar.ast.literal import *  # noqa: F403
    from flowsql_grammar.ast.match import *  # noqa: F403
    from flowsql_grammar.ast.node import FileName as FileName
    from flowsql_grammar.ast.node import Identifier as Identifier
    from flowsql_grammar.ast.node import Name as Name
    from flowsql_grammar.ast.node import Node as Node
    from flowsql_grammar.ast.query import *  # noqa: F403
    from flowsql_grammar.ast.reshape import *  # noqa: F403
    from flowsql_grammar.ast.session import *  # noqa: F403
    from flowsql_grammar.ast.special import *  # noqa: F403
    from flowsql_grammar.ast.statement import *  # noqa: F403
    from flowsql_grammar.ast.type import *  # noqa: F403
    from flowsql_grammar.ast.window import *  # noqa: F403

_HOMES = {
    "node": "FileName Identifier Name Node",
    "literal": (
        "BinaryLiteral BooleanLiteral DateLiteral Literal NullLiteral NumberLiteral Parameter StringLiteral"
        " TimeLiteral TimestampLiteral"
    ),
    "interval": "IntervalExpression IntervalLiteral IntervalQualifier TimeUnit",
    "expression": (
        "ArrayConstructor Between BinaryOp BinaryOperator Case Cast CollectionKind CollectionQuery ColumnRef"
        " Exists Expression FieldAccess InList InSubquery IsDistinctFrom IsPredicate IsTest ItemAccess Like"
        " LikeKind MapConstructor MultisetConstructor QuantifiedComparison Quantifier RowConstructor Star Subquery"
        " UnaryOp UnaryOperator Unique When"
    ),
    "call": (
        "Argument DefaultValue Descriptor DescriptorColumn FunctionCall MatchScope ModelArgument NamedArgument"
        " NullTreatment SetQuantifier TableArgument"
    ),
    "window": "BoundKind Frame FrameBound FrameUnit WindowSpec",
    "special": (
        "ConvertTo EscapedFunction Extract IntervalDifference NewObject Overlay Position RoundDirection"
        " RoundToUnit SequenceValue Substring TimestampAdd TimestampDiff TranslateUsing Trim TrimSide"
    ),
    "json": (
        "JsonArray JsonArrayAgg JsonBehavior JsonBehaviorKind JsonElement JsonEntry JsonErrorBehavior JsonExists"
        " JsonNullClause JsonObject JsonObjectAgg JsonPassing JsonQuery JsonValue JsonWrapper"
    ),
    "query": (
        "CommonTable Cube DerivedTable ExplicitTable GroupBy GroupingElement GroupingSet GroupingSets Hint"
        " HintArgument Join JoinKind NamedWindow NullOrder OrderItem Query QueryBody Relation Rollup Select"
        " SelectItem SetOperation SetOperator TableAlias TableFunction TableRef Unnest Values"
    ),
    "reshape": "ExtendedColumn Pivot PivotItem Sample SampleMethod Unpivot UnpivotItem UnpivotNulls",
    "type": (
        "ArrayType BasicType IntervalType MapType MultisetType RawType RowField RowType StructuredType TypeSpec"
        " UserType"
    ),
    "match": (
        "AfterMatch MatchRecognize Measure Pattern PatternAlternation PatternDefinition PatternExclusion"
        " PatternPermute PatternRepeat PatternSequence PatternVariable RowsPerMatch SkipKind SubsetDefinition"
    ),
    "statement": (
        "Assignment BeginStatementSet ClientCommand ClientCommandKind CompileAndExecutePlan CompilePlan"
        " ConflictAction Delete EndStatementSet Execute ExecutePlan Explain ExplainDetail Insert Merge MergeInsert"
        " QueryStatement Runnable Statement StatementSet Truncate Update"
    ),
    "session": ("AddJar Call LoadModule RemoveJar Reset Set StopJob UnloadModule UseCatalog UseDatabase UseModules"),
    "inspection": (
        "Describe DescribeJob DescribeKind DescribeStatement Preposition Show ShowCreate ShowCreateKind"
        " ShowCurrent ShowCurrentKind ShowKind ShowLike ShowOperators"
    ),
    "ddl": (
        "AddElements AddPartitions Alter AlterAction AlterFunction AnalyzeTable Column ColumnPosition"
        " ComputedColumn Constraint ConstraintKind CreateCatalog CreateConnection CreateDatabase CreateFunction"
        " CreateMaterializedTable CreateModel CreateTable CreateView DdlStatement Distribution DistributionKind"
        " Drop DropColumns DropConstraint DropDistribution DropPartitions DropPrimaryKey DropWatermark"
        " Expectation FunctionLanguage LikeFeature LikeOption MergeStrategy MetadataColumn ModifyElements ObjectKind"
        " Option PartitionEntry PartitionSpec PhysicalColumn PositionedColumn Refresh RefreshMode RenameColumn"
        " RenameObject ResetOptions Resource ResourceKind Resume SetComment SetFreshness SetOptions SetQuery"
        " SetRefreshMode StartMode StartModeKind Suspend TableLike Watermark"
    ),
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
