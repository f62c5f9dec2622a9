"""Runs of data sets in the folder of a test."""

import pytest

from hodyn_ros.datasets import DatasetRun, process_files


@pytest.fixture
def processed(tmp_path):
    """Run of the inputs in tmp_path / 'in', by this process and into NPZ unless told otherwise."""

    def run(model, progress=None, **options):
        options = {'workers': 0, 'suffix': '.npz', **options}
        return process_files(
            DatasetRun(model, tmp_path / 'in', tmp_path / 'out', **options), progress
        )

    return run
