"""The benchmarks, which are no part of what is installed."""

import sys
from pathlib import Path

sys.path.append(
    str(Path(__file__).resolve().parents[2])
)  # at the end: the package is installed
