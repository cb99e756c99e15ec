"""A made-up company, its notes and questions, for `heedful demo`."""
