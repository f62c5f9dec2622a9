"""Compiled inverse dynamics of order 0, 1 and 2: what `inverse_dynamics` runs by default."""
