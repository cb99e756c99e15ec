"""Bringing a policy into use: shadow, canary, and the check before promotion."""
