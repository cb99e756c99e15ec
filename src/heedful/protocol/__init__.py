"""The locked study: record passes once, choose a policy on the fit side, lock it, open the test side."""
