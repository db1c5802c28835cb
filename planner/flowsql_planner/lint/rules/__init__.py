"""The rules, a small family a module; ``flowsql_planner.lint.registry`` lists them."""
