"""Questions asked of a study about its banks: each records only what it changes."""
