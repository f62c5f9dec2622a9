"""Units of time in messages."""

__all__ = ['NANOSECONDS']

NANOSECONDS = 1_000_000_000
"""In a second."""
