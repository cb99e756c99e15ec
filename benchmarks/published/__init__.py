"""The tables and the figure of README.md and results/README.md, from the published ledgers."""
