"""Pages about experiments."""
