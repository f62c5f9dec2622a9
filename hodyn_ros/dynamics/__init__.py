"""Inverse dynamics with time derivatives. One file a formulation; `inverse` is the public entry."""
