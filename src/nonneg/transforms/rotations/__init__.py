"""Orthogonal matrices: rotations, and a quasi-Newton descent over them."""
