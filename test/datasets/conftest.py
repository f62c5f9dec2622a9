"""Warnings of Dask, which come as slow as the machine is, fail no test of data sets."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings('default'))
