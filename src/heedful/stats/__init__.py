"""Statistics: each takes plain numbers and refuses empty input."""
