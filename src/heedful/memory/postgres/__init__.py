"""Banks, decisions and feedback in PostgreSQL, for several servers at once."""
