"""Other ways to compute efforts and their derivatives, one module each.

Each module has functions that make contestants for a case, and raise `NotInstalled` if what they
need is missing.
"""
