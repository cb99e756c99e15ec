"""The dashboard: server-rendered pages about a running heedful."""
