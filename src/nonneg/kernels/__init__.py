"""Inner loops: one package per operation, with one contract and implementations that tests prove equal.

Each package chooses its implementation; all of them obey the docstrings of its front door. Numba and Triton
are imported when a kernel is first needed.
"""
