"""Recordings: frames and back, sound files, masks, groups of components, sources."""
