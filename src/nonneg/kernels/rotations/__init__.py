"""Rotations of small transforms: compiled matrix functions."""
