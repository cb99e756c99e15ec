"""Agents: episodes in an environment under the control loop, and studies of them."""
