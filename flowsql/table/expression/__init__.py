"""``Expression`` and the words that its methods take."""

from flowsql.table.expression.enums import JsonExistsOnError as JsonExistsOnError
from flowsql.table.expression.enums import JsonOnNull as JsonOnNull
from flowsql.table.expression.enums import JsonQueryOnEmptyOrError as JsonQueryOnEmptyOrError
from flowsql.table.expression.enums import JsonQueryWrapper as JsonQueryWrapper
from flowsql.table.expression.enums import JsonType as JsonType
from flowsql.table.expression.enums import JsonValueOnEmptyOrError as JsonValueOnEmptyOrError
from flowsql.table.expression.enums import TimeIntervalUnit as TimeIntervalUnit
from flowsql.table.expression.enums import TimePointUnit as TimePointUnit
from flowsql.table.expression.expression import Expression as Expression
