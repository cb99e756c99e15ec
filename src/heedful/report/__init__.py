"""Reports: the results of a study, computed from its ledger and lock alone."""
