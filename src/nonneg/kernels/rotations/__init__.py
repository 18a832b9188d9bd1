"""Rotations of small transforms: compiled matrix functions (`numba`) and fused line searches (`triton`)."""
