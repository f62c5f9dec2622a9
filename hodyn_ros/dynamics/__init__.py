"""Inverse dynamics with time derivatives: one file a formulation; `inverse` is the entry."""
