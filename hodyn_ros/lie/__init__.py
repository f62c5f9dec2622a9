"""Rotations and rigid-body motions: SO(3), SE(3) and their Lie algebras as NumPy arrays."""
