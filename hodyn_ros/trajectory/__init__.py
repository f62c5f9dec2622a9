"""Motions between waypoints, and reference motions."""
