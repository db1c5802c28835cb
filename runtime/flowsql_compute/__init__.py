"""The expression engine: functions, evaluation, scalar kernels. Above ``flowsql_core`` alone."""
