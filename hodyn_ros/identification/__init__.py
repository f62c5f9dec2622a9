"""Parameters of a robot from recordings of it, motions that show them, and how well they fit."""

__all__: list[str] = []
