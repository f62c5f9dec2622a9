"""Dataclasses whose arrays are read-only, also behind a process boundary."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np


class Immutable:
    """Base of frozen dataclasses: closes the arrays in their fields, and keeps them closed.

    Arrays come out of a pickle or a copy writeable, so both make a new object.
    """

    def __post_init__(self) -> None:
        for value in self._values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), self._values()

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
