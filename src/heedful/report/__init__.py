"""Reports: what a study found, computed from its ledger and its lock alone."""
