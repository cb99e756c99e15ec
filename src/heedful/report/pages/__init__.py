"""The pages of the experiments."""
