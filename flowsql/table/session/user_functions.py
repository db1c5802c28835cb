"""Python functions as the catalog keeps them for a session."""

from __future__ import annotations

from typing import Any

from flowsql_core.catalog import CatalogFunction


def catalog_function(function: Any) -> CatalogFunction:
    """The catalog's entry of a function object: what ``udf`` made, a ``ScalarFunction`` or ``AggregateFunction``,
    or a function with hints.

    Raises:
        TypeError: not a function. BindError: its result type is not known.
    """
    from flowsql_core.process_function import ProcessTableFunction
    from flowsql_core.udf import ImperativeAggregateFunction, ScalarUdf
    from flowsql_core.udf_aggregates import make_own
    from flowsql_core.udf_types import make_udf

    if isinstance(function, ImperativeAggregateFunction):
        declared: ScalarUdf = make_own(function)
    elif isinstance(function, ProcessTableFunction):
        # Loaded with functions that are of this kind only.
        from flowsql_core.process_signature import make_own_process

        declared = make_own_process(function)
    else:
        declared = function if isinstance(function, ScalarUdf) else make_udf(function)
    return CatalogFunction(f"{type(function).__module__}.{declared.name}", function=declared)
