"""Inner loops: one module or package per operation, with one contract and bodies that tests prove equal.

The door of an operation states the contract and chooses the body: the compiled core, Triton or array code.
Triton is imported when a kernel on a GPU is first needed.
"""
