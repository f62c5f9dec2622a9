"""What inputs are found, what outputs are called, and what fingerprints tell apart."""

import os
from dataclasses import replace

import numpy as np
import pytest
from support.batch_tools import Deadly, two_link

from hodyn_ros.datasets import BatchError, DatasetRun, process_files
from hodyn_ros.datasets.inputs import find_inputs
from hodyn_ros.model.friction import Coulomb, Viscous


@pytest.fixture
def tree(tmp_path):
    for name in (
        'a.npz',
        'b.csv',
        'notes.txt',
        'sub/c.PARQUET',
        'sub/deep/d.yaml',
        'sub/_hidden/e.csv',
        '.cache/f.csv',
        'bag/metadata.yaml',
        'bag/bag_0.mcap',
        'loose.mcap',
        'out/a.npz',
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def names_in(inputs, tree):
    return [item.name for item in find_inputs(inputs, tree / 'out')]


def test_folder_is_searched_with_all_below_but_hidden_and_output(tree):
    assert names_in(tree, tree) == [
        'a.npz',
        'b.csv',
        'bag',
        'loose.mcap',
        'sub/c.PARQUET',
        'sub/deep/d.yaml',
    ]


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('pattern', 'names'),
    [
        ('sub/**/*.yaml', ['deep/d.yaml']),
        ('**/*.[cn]*', ['a.npz', 'b.csv']),
        ('sub/_hidden/*', ['e.csv']),
    ],
)
def test_pattern_keeps_the_folders_behind_its_fixed_part(pattern, names, tree):
    assert names_in(str(tree / pattern), tree) == names


@pytest.mark.skipif(not hasattr(os, 'mkfifo'), reason='needs pipes with names')
def test_pipes_devices_and_links_in_a_circle_are_no_inputs(tree):
    before = names_in(tree, tree)
    (tree / 'sub' / 'around').symlink_to(tree, target_is_directory=True)
    os.mkfifo(tree / 'sub' / 'pipe.csv')
    (tree / 'zero.npz').symlink_to('/dev/zero')
    assert names_in(tree, tree) == before
    for inputs in (tree / 'sub' / 'pipe.csv', str(tree / '*o.npz')):
        with pytest.raises(BatchError, match='no motion was found there'):
            find_inputs(inputs, tree / 'out')


def test_list_names_every_file_once(tree):
    inputs = [tree / 'b.csv', str(tree / '*.csv'), tree / 'bag', tree / 'sub']
    assert names_in(inputs, tree) == ['b.csv', 'bag', 'c.PARQUET', 'deep/d.yaml']


def test_files_of_one_name_from_different_folders_are_refused(tree):
    (tree / 'sub' / 'a.npz').write_text('other')
    with pytest.raises(BatchError, match="both be called 'a.npz'"):
        find_inputs([tree / 'a.npz', tree / 'sub' / 'a.npz'], tree / 'out')


def test_outputs_that_meet_all_the_same_are_refused(tree):
    (tree / 'b.csv.npz').write_text('other')
    with pytest.raises(
        BatchError, match="b.csv.* and .*b.csv.* would both be called 'b.csv.npz'"
    ):
        process_files(DatasetRun(two_link(), tree, tree / 'out', suffix='.npz', workers=0))


CHANGES = {
    'mass': lambda: two_link(mass=2.0000001),
    'gravity': lambda: replace(two_link(), gravity=np.array([0.0, 0.0, -9.8])),
    'friction': lambda: two_link().with_friction({'elbow': Viscous(0.1)}),
    'another law': lambda: two_link().with_friction({'elbow': Coulomb(0.1)}),
    'a law of ones own': lambda: two_link().with_friction({'elbow': Deadly()}),
    'the other joint': lambda: two_link().with_friction({'shoulder': Viscous(0.1)}),
    'armature': lambda: two_link().with_armature({'elbow': 0.1}),
    'payload': lambda: two_link().with_payload('link2', 0.1),
}


def test_a_robot_that_differs_in_any_number_is_another_one():
    def made_with(model):
        return DatasetRun(model, 'in', 'out').made_with()['the robot']

    found = {name: made_with(make()) for name, make in CHANGES.items()}
    found['none'] = made_with(two_link())
    assert len(set(found.values())) == len(found)
    used = two_link()
    used.warm_up(0)
    assert made_with(used) == found['none']
