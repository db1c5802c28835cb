"""CREATE TABLE ... LIKE: which features of the source table are taken over, and how conflicts end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from flowsql_core.catalog import CatalogTable, ColumnKind, TableColumn
from flowsql_core.errors import BindError
from flowsql_core.graph.expectation import EXPECTATIONS
from flowsql_core.record import record
from flowsql_grammar import ast
from flowsql_planner.catalog.schema import Options

_ADD = ast.MergeStrategy.INCLUDING
_DEFAULTS = {
    ast.LikeFeature.OPTIONS: ast.MergeStrategy.OVERWRITING,
    ast.LikeFeature.WATERMARKS: _ADD,
    ast.LikeFeature.GENERATED: _ADD,
    ast.LikeFeature.METADATA: _ADD,
    ast.LikeFeature.CONSTRAINTS: _ADD,
    ast.LikeFeature.DISTRIBUTION: _ADD,
    ast.LikeFeature.PARTITIONS: _ADD,
}
#: Only these may be overwritten one by one.
_OVERWRITABLE = frozenset(
    {
        ast.LikeFeature.OPTIONS,
        ast.LikeFeature.WATERMARKS,
        ast.LikeFeature.GENERATED,
        ast.LikeFeature.METADATA,
    }
)


@record
class LikeRules:
    """The strategy of each feature: Flink's defaults, then ALL, then the features written."""

    strategies: Mapping[ast.LikeFeature, ast.MergeStrategy]

    @classmethod
    def of(cls, like: ast.TableLike) -> LikeRules:
        """The rules that a LIKE clause says."""
        strategies = dict(_DEFAULTS)
        _refuse_repeated(like)
        for option in sorted(like.options, key=lambda option: option.feature is not ast.LikeFeature.ALL):
            if option.feature is ast.LikeFeature.ALL:
                if option.strategy is ast.MergeStrategy.OVERWRITING:
                    raise _no_such(option)
                strategies = dict.fromkeys(strategies, option.strategy)
                continue
            if option.strategy is ast.MergeStrategy.OVERWRITING and option.feature not in _OVERWRITABLE:
                raise _no_such(option)
            strategies[option.feature] = option.strategy
        return cls(strategies)

    def includes(self, feature: ast.LikeFeature) -> bool:
        """Whether the new table gets the feature of the source."""
        return self.strategies[feature] is not ast.MergeStrategy.EXCLUDING

    def overwrites(self, feature: ast.LikeFeature) -> bool:
        """Whether what the new table says replaces the source's."""
        return self.strategies[feature] is ast.MergeStrategy.OVERWRITING

    def columns(self, source: CatalogTable) -> Iterator[TableColumn]:
        """Columns of the source that the new table has too: all physical ones, others by rule."""
        for column in source.columns:
            match column.kind:
                case ColumnKind.PHYSICAL:
                    yield column
                case ColumnKind.COMPUTED if self.includes(ast.LikeFeature.GENERATED):
                    yield column
                case ColumnKind.METADATA if self.includes(ast.LikeFeature.METADATA):
                    yield column

    def options(self, source: CatalogTable, own: Mapping[str, ast.Option]) -> Options:
        """Options of the source but its expectations; BindError when one is given twice and may not be."""
        inherited = tuple(option for option in source.options if option[0] != EXPECTATIONS)
        strategy = self.strategies[ast.LikeFeature.OPTIONS]
        if strategy is ast.MergeStrategy.EXCLUDING:
            return ()
        if strategy is ast.MergeStrategy.INCLUDING:
            for key, value in inherited:
                if key in own:
                    raise BindError(
                        "duplicate-option",
                        f"There already exists an option ['{key}' -> '{value}']  in the base table. You might want to "
                        "specify EXCLUDING OPTIONS or OVERWRITING OPTIONS.",
                        own[key].span,
                    )
        return inherited


def _refuse_repeated(like: ast.TableLike) -> None:
    for i, option in enumerate(like.options):
        if any(option.feature is earlier.feature for earlier in like.options[:i]):
            raise BindError("like-option", "Each like option feature can be declared only once.", option.span)


def _no_such(option: ast.LikeOption) -> BindError:
    return BindError(
        "like-option", f"Illegal merging strategy '{option.strategy}' for '{option.feature}' option.", option.span
    )
