"""Live rows of running jobs: taps at the outputs of operators, and what they are called."""
