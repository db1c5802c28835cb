"""Physical plan -> JobGraph: specs, exchanges, chains, ids."""
