"""Lineage as JSON, in the shape of OpenLineage's column lineage facet (version 1-2-0).

Source: https://openlineage.io/docs/spec/facets/dataset-facets/column_lineage_facet.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from flowsql_planner.lineage.model import Dataset, How, Influences, Lineage, by_source


def lineage_json(found: Sequence[Lineage]) -> str:
    """All tables that are read, and each that is written with its facet, once an INSERT."""
    sources = sorted({source for lineage in found for source in lineage.sources}, key=lambda each: each.path)
    outputs = [_output(lineage) for lineage in found]
    return json.dumps({"inputs": [_named(each) for each in sources], "outputs": outputs}, ensure_ascii=False, indent=2)


def _output(lineage: Lineage) -> dict[str, Any]:
    named = {"namespace": "flowsql", "name": "query"} if lineage.target is None else _named(lineage.target)
    fields = {name: {"inputFields": _fields(influences)} for name, influences in lineage.columns}
    facet = {"fields": fields, "dataset": _fields(lineage.rows)}
    return {**named, "facets": {"columnLineage": facet}}


def _named(dataset: Dataset) -> dict[str, Any]:
    return {"namespace": dataset.namespace, "name": dataset.name}


def _fields(influences: Influences) -> list[dict[str, Any]]:
    return [
        {**_named(source.dataset), "field": source.column, "transformations": [_transformation(how) for how in hows]}
        for source, hows in by_source(influences).items()
    ]


def _transformation(how: How) -> dict[str, str]:
    return {"type": "DIRECT" if how.direct else "INDIRECT", "subtype": how.value}
