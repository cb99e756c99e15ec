"""The effect of each memory entry, which entries to retire, and how to build banks."""
