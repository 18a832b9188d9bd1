"""Rotations of frames."""
