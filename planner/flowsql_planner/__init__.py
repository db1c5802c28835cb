"""The planner: AST to logical plan, optimizer rules, physical plan, ``JobGraph``. Never imports the runtime."""
