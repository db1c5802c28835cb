"""Catalog objects under PyFlink's names: paths, descriptors, the parts of a resolved schema."""

from flowsql.table.catalog.catalog import Catalog as Catalog
from flowsql.table.catalog.entries import CatalogBaseTable as CatalogBaseTable
from flowsql.table.catalog.entries import CatalogDatabase as CatalogDatabase
from flowsql.table.catalog.entries import CatalogFunction as CatalogFunction
from flowsql.table.catalog.entries import CatalogPartition as CatalogPartition
from flowsql.table.catalog.entries import CatalogPartitionSpec as CatalogPartitionSpec
from flowsql.table.catalog.entries import CatalogTableStatistics as CatalogTableStatistics
from flowsql.table.catalog.objects import CatalogDescriptor as CatalogDescriptor
from flowsql.table.catalog.objects import CatalogModel as CatalogModel
from flowsql.table.catalog.objects import HiveCatalog as HiveCatalog
from flowsql.table.catalog.objects import JdbcCatalog as JdbcCatalog
from flowsql.table.catalog.objects import ObjectIdentifier as ObjectIdentifier
from flowsql.table.catalog.objects import ObjectPath as ObjectPath
from flowsql.table.catalog.objects import Procedure as Procedure
from flowsql.table.catalog.resolved_schema import Column as Column
from flowsql.table.catalog.resolved_schema import ComputedColumn as ComputedColumn
from flowsql.table.catalog.resolved_schema import Constraint as Constraint
from flowsql.table.catalog.resolved_schema import MetadataColumn as MetadataColumn
from flowsql.table.catalog.resolved_schema import PhysicalColumn as PhysicalColumn
from flowsql.table.catalog.resolved_schema import ResolvedSchema as ResolvedSchema
from flowsql.table.catalog.resolved_schema import UniqueConstraint as UniqueConstraint
from flowsql.table.catalog.resolved_schema import WatermarkSpec as WatermarkSpec
from flowsql.table.catalog.statistics import CatalogColumnStatistics as CatalogColumnStatistics
from flowsql.table.catalog.statistics import CatalogColumnStatisticsData as CatalogColumnStatisticsData
