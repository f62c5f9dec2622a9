"""How many examples hypothesis tries; `conftest.py` says what a short and a long run are."""

from hypothesis import settings

EXPENSIVE = settings(max_examples=settings.default.max_examples // 5)
"""For tests that compute for long with each example."""
