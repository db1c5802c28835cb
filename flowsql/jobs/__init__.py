"""Jobs as people see them: those of this process, and those of the user's other processes on this machine."""
