"""The results of a study as numbers, computed from its ledger and lock alone."""
