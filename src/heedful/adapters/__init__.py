"""The control loop inside other libraries' clients."""
