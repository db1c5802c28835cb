"""One rewrite a file; the file name is the function name and the name in the trace."""
