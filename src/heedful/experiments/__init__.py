"""Experiments on the banks of a study; each records only the passes it changes."""
