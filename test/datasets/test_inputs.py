"""What inputs are found, what outputs are called, and what fingerprints tell apart."""

import os
import pickle
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from support.batch_tools import Deadly, two_link

from hodyn_ros import RobotModel, actuators
from hodyn_ros.datasets import BatchError, DatasetRun, process_files
from hodyn_ros.datasets.inputs import digest_of, find_inputs, input_digest, output_name
from hodyn_ros.model.friction import Coulomb, Viscous
from hodyn_ros.resources import share_file

ROOT = Path(__file__).resolve().parents[2]


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
    assert {item.path for item in find_inputs(tree, tree / 'out')} >= {
        tree / 'bag',
        tree / 'sub' / 'c.PARQUET',
    }


@pytest.mark.parametrize(
    ('pattern', 'names'),
    [
        ('*.npz', ['a.npz']),
        ('sub/**/*.yaml', ['deep/d.yaml']),
        ('**/*.[cn]*', ['a.npz', 'b.csv']),
        ('sub/_hidden/*', ['e.csv']),
        ('b*', ['b.csv', 'bag']),
        ('s?b/c.*', ['sub/c.PARQUET']),
    ],
)
def test_pattern_keeps_the_folders_behind_its_fixed_part(pattern, names, tree):
    assert names_in(str(tree / pattern), tree) == names


@pytest.mark.skipif(not hasattr(os, 'mkfifo'), reason='needs pipes with names')
def test_pipes_and_devices_are_no_inputs(tree):
    before = names_in(tree, tree)
    os.mkfifo(tree / 'sub' / 'pipe.csv')
    (tree / 'zero.npz').symlink_to('/dev/zero')
    assert names_in(tree, tree) == before
    for inputs in (tree / 'sub' / 'pipe.csv', str(tree / '*o.npz')):
        with pytest.raises(BatchError, match='no motion was found there'):
            find_inputs(inputs, tree / 'out')


def test_links_in_a_circle_come_to_an_end(tree):
    before = names_in(tree, tree)
    (tree / 'sub' / 'around').symlink_to(tree, target_is_directory=True)
    assert names_in(tree, tree) == before


def test_list_names_every_file_once(tree):
    inputs = [tree / 'b.csv', str(tree / '*.csv'), tree / 'bag', tree / 'sub']
    assert names_in(inputs, tree) == ['b.csv', 'bag', 'c.PARQUET', 'deep/d.yaml']


@pytest.mark.parametrize(
    ('inputs', 'message'),
    [
        ('nothing.npz', 'no motion was found there'),
        ('*.mat', 'no motion was found there'),
        ([], 'the list is empty'),
        ('out', 'lies in the output folder'),
    ],
)
def test_nothing_found_is_told(inputs, message, tree):
    given = [] if inputs == [] else str(tree / inputs)
    with pytest.raises(BatchError, match=message):
        find_inputs(given, tree / 'out')


def test_files_of_one_name_from_different_folders_are_refused(tree):
    (tree / 'sub' / 'a.npz').write_text('other')
    with pytest.raises(BatchError, match="both be called 'a.npz'"):
        find_inputs([tree / 'a.npz', tree / 'sub' / 'a.npz'], tree / 'out')


def test_output_names_do_not_meet():
    names = ['a.npz', 'a.csv', 'b/a.csv', 'bag', 'x.PARQUET']
    outputs = [output_name(name, '.npz') for name in names]
    assert outputs == ['a.npz', 'a.csv.npz', 'b/a.csv.npz', 'bag.npz', 'x.PARQUET.npz']


def test_outputs_that_meet_all_the_same_are_refused(tree):
    (tree / 'b.csv.npz').write_text('other')
    with pytest.raises(
        BatchError, match="b.csv.* and .*b.csv.* would both be called 'b.csv.npz'"
    ):
        process_files(DatasetRun(two_link(), tree, tree / 'out', suffix='.npz', workers=0))


def test_output_folder_that_cannot_be_made_is_told(tree):
    with pytest.raises(BatchError, match='a.npz cannot be made'):
        process_files(DatasetRun(two_link(), tree, tree / 'a.npz', workers=0))


CHANGES = {
    'mass': lambda: two_link(mass=2.0000001),
    'gravity': lambda: replace(two_link(), gravity=np.array([0.0, 0.0, -9.8])),
    'friction': lambda: two_link().with_friction({'elbow': Viscous(0.1)}),
    'more friction': lambda: two_link().with_friction({'elbow': Viscous(0.2)}),
    'another law': lambda: two_link().with_friction({'elbow': Coulomb(0.1)}),
    'both laws': lambda: two_link().with_friction({'elbow': Viscous(0.1) + Coulomb(0.1)}),
    'a law of ones own': lambda: two_link().with_friction({'elbow': Deadly()}),
    'the other joint': lambda: two_link().with_friction({'shoulder': Viscous(0.1)}),
    'armature': lambda: two_link().with_armature({'elbow': 0.1}),
    'payload': lambda: two_link().with_payload('link2', 0.1),
}


def test_digest_of_a_robot_knows_its_every_number():
    found = {name: digest_of(make()) for name, make in CHANGES.items()}
    found['none'] = digest_of(two_link())
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize('field', [field.name for field in fields(RobotModel)])
def test_digest_of_a_robot_knows_each_of_its_attributes(field):
    model = two_link()
    other = (
        {'something': 'else'}
        if field in ('links', 'friction', 'follower_limits')
        else ('something', 'else')
    )
    assert digest_of(replace(model, **{field: other})) != digest_of(model)


def test_digest_does_not_depend_on_use_or_process():
    model = RobotModel.from_urdf(share_file('urdf/panda.urdf'))
    laws = {'panda_joint3': Viscous(0.1), 'panda_joint1': Coulomb(0.2)}
    drives = {
        'panda_joint2': actuators.SeriesElastic(actuators.CubicSpring(300.0, 4.0), 0.1)
    }
    robot = actuators.Actuators(model.with_friction(laws), drives)
    before = digest_of(robot)
    robot.model.warm_up(1)
    assert digest_of(robot) == before
    code = """
import pickle, sys
from hodyn_ros.datasets.inputs import digest_of
print(digest_of(pickle.load(sys.stdin.buffer)))
"""
    for seed in ('1', '2'):
        done = subprocess.run(
            [sys.executable, '-c', code],
            input=pickle.dumps(robot),
            capture_output=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, 'PYTHONHASHSEED': seed, 'PYTHONPATH': str(ROOT)},
        )
        assert done.stdout.decode().strip() == before


def test_digest_of_equal_values_is_equal():
    names = ['ab', 'cd']
    assert digest_of((names[0], names[0])) == digest_of((''.join(['a', 'b']), 'ab'))
    assert digest_of(np.arange(3.0)) == digest_of(np.arange(3.0))
    assert digest_of(np.zeros(2)) != digest_of(np.zeros((2, 1)))
    assert digest_of(Viscous(1.0)) != digest_of(Coulomb(1.0))


def test_quick_digest_sees_time_and_size(tmp_path):
    path = tmp_path / 'file'
    path.write_bytes(bytes(100))
    os.utime(path, ns=(0, 10**18))
    before = input_digest(path)
    path.write_bytes(bytes(100))
    os.utime(path, ns=(0, 10**18))
    assert input_digest(path) == before
    os.utime(path, ns=(0, 10**18 + 1))
    assert input_digest(path) != before
    path.write_bytes(bytes(101))
    os.utime(path, ns=(0, 10**18))
    assert input_digest(path) != before


def test_digest_of_the_content_sees_every_byte_and_no_time(tmp_path):
    path = tmp_path / 'file'
    content = bytearray(3 << 20)
    path.write_bytes(content)
    before = input_digest(path, 'content')
    os.utime(path, ns=(0, 10**18))
    assert input_digest(path, 'content') == before
    content[2 << 20] = 1
    path.write_bytes(content)
    assert input_digest(path, 'content') != before


def test_digest_of_a_bag_knows_all_its_files(tree):
    before = input_digest(tree / 'bag', 'content')
    (tree / 'bag' / 'bag_0.mcap').rename(tree / 'bag' / 'bag_1.mcap')
    assert input_digest(tree / 'bag', 'content') != before
