"""Initializations of a factorization: functions from the data to a first W and H, and their registry."""
