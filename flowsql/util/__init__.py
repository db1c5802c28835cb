"""PyFlink's ``pyflink.util`` under FlowSQL's name, as far as programs meet it."""
