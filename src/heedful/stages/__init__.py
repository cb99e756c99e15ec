"""The steps of the control loop as pure functions, one file per step."""
