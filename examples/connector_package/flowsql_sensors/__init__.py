"""The connector ``sensors``: what stands behind its name."""

from flowsql.connectors import Connector

SENSORS = Connector(source="flowsql_sensors.source:Sensors", sink="flowsql_sensors.sink:JsonLines")
