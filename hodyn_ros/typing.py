"""Types of arrays that all packages share."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ['Array', 'Flags', 'Indices']

Array: TypeAlias = NDArray[np.float64]
"""Real numbers."""
Flags: TypeAlias = NDArray[np.bool_]
"""Truth values."""
Indices: TypeAlias = NDArray[np.intp]
"""Places in other arrays."""
