"""A fictional company with notes and questions, for `heedful demo`."""
