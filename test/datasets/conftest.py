"""Warnings of Dask, which come as slow as the machine is, fail no test of data sets."""

from pathlib import Path

import pytest

from hodyn_ros.datasets import DatasetRun, process_files


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings('default'))


@pytest.fixture
def processed(tmp_path):
    """Run of the inputs in tmp_path / 'in', by this process and into NPZ unless told otherwise."""

    def run(model, progress=None, **options):
        options = {'workers': 0, 'suffix': '.npz', **options}
        return process_files(
            DatasetRun(model, tmp_path / 'in', tmp_path / 'out', **options), progress
        )

    return run
