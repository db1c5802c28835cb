"""Tables of lakes: data files in a storage, and a history of commits that says which of them count."""
