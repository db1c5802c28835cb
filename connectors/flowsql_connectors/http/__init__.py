"""``http``: tables that are polled, looked up and posted to over HTTP."""
