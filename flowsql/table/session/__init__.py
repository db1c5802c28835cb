"""A session: environments, the statements they carry out, the catalog's objects, the results' way out of a job."""
