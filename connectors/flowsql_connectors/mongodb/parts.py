"""Parts of a collection that are read side by side: ranges of ``_id``, found as Flink's connector finds them.

A range is a filter, and ranges of one collection hold each document once, whatever types its ids have: bounds of
another type than the first one are left out, and what is no value of that type is in the first range.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from bson import Decimal128, Int64, MaxKey, MinKey, json_util

from flowsql_connectors.mongodb.client import collection_of, connect, told
from flowsql_connectors.mongodb.conditions import ID
from flowsql_connectors.mongodb.options import PART_BYTES, PART_RECORDS, SAMPLES, STRATEGY
from flowsql_connectors.options import OptionValues
from flowsql_core.errors import ConnectorError

logger = logging.getLogger(__name__)

_NUMBERS: Final = (int, Int64, float, Decimal128)
_ALL: Final = ""


def found_parts(values: OptionValues) -> Sequence[str]:
    """Ranges that hold all documents, as texts for :func:`filter_of`.

    Raises:
        ConnectorError: the server does not answer, or refuses the strategy.
    """
    strategy = values.get(STRATEGY)
    if strategy == "single":
        return [_ALL]
    client = connect(values)
    try:
        collection = collection_of(client, values)
        if strategy != "default":
            with told(values):
                return _ranges(_STRATEGIES[strategy](client, collection, values))
        return _by_default(client, collection, values)
    finally:
        client.close()


def _by_default(client: Any, collection: Any, values: OptionValues) -> Sequence[str]:
    """Chunks of a sharded collection; else what the server splits, or samples, where it lets us."""
    with told(values):
        sharded = _statistics(collection)["sharded"]
    for strategy in ("sharded",) if sharded else ("split-vector", "sample"):
        try:
            with told(values):
                return _ranges(_STRATEGIES[strategy](client, collection, values))
        except ConnectorError as error:
            if error.code == "mongodb-unreachable":
                raise
            logger.info("No parts by '%s': %s", strategy, error.message)
    return [_ALL]


def _statistics(collection: Any) -> dict[str, Any]:
    found = collection.database.command("collStats", collection.name)
    count, size = int(found.get("count", 0)), int(found.get("size", 0))
    return {"sharded": bool(found.get("sharded")), "count": count, "average": max(1, size // max(1, count))}


def _by_server(client: Any, collection: Any, values: OptionValues) -> list[Any]:
    found = client.admin.command(
        {
            "splitVector": f"{collection.database.name}.{collection.name}",
            "keyPattern": {ID: 1},
            "force": False,
            "maxChunkSizeBytes": max(1, values.get(PART_BYTES)),
        }
    )
    return [key[ID] for key in found["splitKeys"]]


def _by_samples(client: Any, collection: Any, values: OptionValues) -> list[Any]:
    statistics = _statistics(collection)
    per_part = max(1, values.get(PART_BYTES) // statistics["average"])
    if per_part >= statistics["count"]:
        return []
    each = values.get(SAMPLES)
    size = max(1, each * statistics["count"] // per_part)
    stages = [{"$sample": {"size": size}}, {"$project": {ID: 1}}, {"$sort": {ID: 1}}]
    return [document[ID] for document in collection.aggregate(stages, allowDiskUse=True)][each::each]


def _by_chunks(client: Any, collection: Any, values: OptionValues) -> list[Any]:
    config = client.get_database("config")
    name = f"{collection.database.name}.{collection.name}"
    about = config["collections"].find_one({ID: name})
    if about is None:
        hint = f"'{STRATEGY.key}' = 'default'"
        raise ConnectorError("mongodb-parts", f"Collection '{name}' is not sharded.", hint=hint)
    if list(about["key"]) != [ID]:
        # Chunks are ranges of other fields: the ids of a chunk are no range.
        return _by_samples(client, collection, values)
    where = {"uuid": about["uuid"]} if "uuid" in about else {"ns": name}
    bounds = [chunk["min"][ID] for chunk in config["chunks"].find(where).sort("min", 1)]
    return [bound for bound in bounds if not isinstance(bound, MinKey | MaxKey)]


def _by_pages(client: Any, collection: Any, values: OptionValues) -> list[Any]:
    step = values.get(PART_RECORDS)
    assert step is not None
    count = collection.count_documents({})
    bounds = []
    for at in range(step, count, step):
        bounds += [document[ID] for document in collection.find({}, {ID: 1}).sort(ID, 1).skip(at).limit(1)]
    return bounds


_STRATEGIES: Final = {
    "split-vector": _by_server,
    "sample": _by_samples,
    "sharded": _by_chunks,
    "pagination": _by_pages,
}


def _ranges(bounds: list[Any]) -> Sequence[str]:
    if not bounds:
        return [_ALL]
    kind = _NUMBERS if isinstance(bounds[0], _NUMBERS) else (type(bounds[0]),)
    cuts = [bound for at, bound in enumerate(bounds) if isinstance(bound, kind) and (not at or bound != bounds[at - 1])]
    filters: list[dict[str, Any]] = [{ID: {"$not": {"$gte": cuts[0]}}}]
    for at, cut in enumerate(cuts):
        filters.append({ID: {"$gte": cut, "$lt": cuts[at + 1]} if at + 1 < len(cuts) else {"$gte": cut}})
    return [json_util.dumps(each, json_options=json_util.CANONICAL_JSON_OPTIONS) for each in filters]


def filter_of(where: str) -> dict[str, Any]:
    """The filter of a range."""
    made: dict[str, Any] = json_util.loads(where) if where else {}
    return made
