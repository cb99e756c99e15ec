"""What each memory entry did, and which have to go."""
