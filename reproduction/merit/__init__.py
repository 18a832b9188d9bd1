"""Nguyen, Fu & Wu: memory-efficient convex optimization for self-dictionary separable NMF (MERIT)."""
