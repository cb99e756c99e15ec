"""Environments for agents, one file or folder each and one line here."""

from heedful.environments.making import EnvironmentOptions, make_environment

__all__ = ["EnvironmentOptions", "make_environment"]
