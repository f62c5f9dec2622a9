"""A manifest that holds what no run has written: nothing of it is trusted."""

import json
import os

import pytest
from batch_tools import make_folder, two_link

from hodyn_ros.batch import process_files


@pytest.fixture(scope='module')
def model():
    return two_link()


@pytest.mark.parametrize(
    'place', ['../in/motion000.npz', 'away/motion000.npz', '{in}', 'a\\u0000', '\\ud800']
)
def test_manifest_that_points_outside_of_its_folder_deletes_nothing_there(place, model, tmp_path):
    motions = make_folder(tmp_path / 'in', model, 2)
    options = {'workers': 0, 'suffix': '.npz'}
    process_files(tmp_path / 'in', model, tmp_path / 'out', **options)
    (tmp_path / 'out' / 'away').symlink_to(tmp_path / 'in', target_is_directory=True)
    path = tmp_path / 'out' / '_hodyn' / 'manifest.jsonl'
    place = place.replace('{in}', str(tmp_path / 'in' / 'motion000.npz'))
    content = path.read_text()
    assert content.count('"output":"motion000.npz"') == 1
    path.write_text(content.replace('"output":"motion000.npz"', f'"output":"{place}"'))
    summary = process_files(tmp_path / 'in', model, tmp_path / 'out', orders=1, **options)
    assert sorted(os.listdir(tmp_path / 'in')) == sorted(motions)
    assert (summary.computed, summary.failed) == (2, 0)
    assert '1 line is left out of the manifest' in summary.remarks[0]


@pytest.mark.parametrize(
    'line',
    [
        {'task': 5}, {'task': [1]}, {'task': 'motion000.npz'}, {'job': [1]}, {'job': 'a'},
        {'task': 'a', 'name': 'a', 'job': 'a', 'input': 1, 'rows': 1, 'output': 1},
    ],
)  # fmt: skip
def test_odd_lines_of_the_manifest_count_for_nothing(line, model, tmp_path):
    make_folder(tmp_path / 'in', model, 2)
    options = {'workers': 0, 'suffix': '.npz'}
    process_files(tmp_path / 'in', model, tmp_path / 'out', **options)
    with open(tmp_path / 'out' / '_hodyn' / 'manifest.jsonl', 'a') as file:
        file.write(json.dumps(line) + '\n')
    summary = process_files(tmp_path / 'in', model, tmp_path / 'out', **options)
    assert (summary.computed, summary.kept) == (0, 2)
    assert len(summary.remarks) == 1
    assert '1 line is left out of the manifest' in summary.remarks[0]
