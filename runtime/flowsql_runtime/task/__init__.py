"""One subtask: mailbox, operator chain, memory."""
