"""What a study found, from its ledger and lock alone: numbers, no words."""
