"""The benchmarks, which are no part of what is installed."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # at the end: the package itself is the installed one


@pytest.fixture(scope='module')
def benchmark_module(request):
    """The benchmark whose name follows `test_benchmark_` in that of the module of tests."""
    name = request.path.stem.removeprefix('test_benchmark_')
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield importlib.import_module(f'benchmarks.{name}')
