"""What inputs are found, what outputs are called, and what fingerprints tell apart."""

import os
import pickle
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from batch_tools import Deadly, make_folder, two_link

from hodyn_ros import RobotModel, actuators
from hodyn_ros.batch import BatchError, process_files
from hodyn_ros.batch.fingerprint import difference, fingerprint_of, input_fingerprint
from hodyn_ros.batch.tasks import find_inputs, output_name
from hodyn_ros.model.friction import Coulomb, Viscous
from hodyn_ros.resources import share_file

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def tree(tmp_path):
    for name in (
        'a.npz', 'b.csv', 'notes.txt', 'sub/c.PARQUET', 'sub/deep/d.yaml', 'sub/_hidden/e.csv',
        '.cache/f.csv', 'bag/metadata.yaml', 'bag/bag_0.mcap', 'loose.mcap', 'out/a.npz',
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def names_in(inputs, tree):
    return [item.name for item in find_inputs(inputs, tree / 'out')]


def test_folder_is_searched_with_all_below_but_hidden_and_output(tree):
    assert names_in(tree, tree) == [
        'a.npz', 'b.csv', 'bag', 'loose.mcap', 'sub/c.PARQUET', 'sub/deep/d.yaml',
    ]
    assert {item.path for item in find_inputs(tree, tree / 'out')} >= {
        tree / 'bag', tree / 'sub' / 'c.PARQUET',
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
def test_pipes_and_devices_are_no_inputs_and_are_named(tree):
    before = names_in(tree, tree)
    os.mkfifo(tree / 'sub' / 'pipe.csv')
    (tree / 'zero.npz').symlink_to('/dev/zero')
    pipe, zero = tree / 'sub' / 'pipe.csv', tree / 'zero.npz'
    assert names_in(tree, tree) == before
    for inputs, expected in ((tree, {pipe, zero}), (str(tree / '**' / '*.csv'), {pipe})):
        special = []
        find_inputs(inputs, tree / 'out', special)
        assert set(special) == expected
    for inputs in (pipe, str(tree / '*o.npz')):
        with pytest.raises(BatchError, match='is no regular file'):
            find_inputs(inputs, tree / 'out', [])
    with pytest.raises(BatchError, match='is no regular file'):
        input_fingerprint(pipe)


@pytest.mark.skipif(not hasattr(os, 'mkfifo'), reason='needs pipes with names')
def test_run_says_that_a_pipe_is_left_out(tmp_path):
    model = two_link()
    make_folder(tmp_path / 'in', model, 1)
    os.mkfifo(tmp_path / 'in' / 'pipe.csv')
    summary = process_files(tmp_path / 'in', model, tmp_path / 'out', suffix='.npz', workers=0)
    assert (summary.total, summary.computed) == (1, 1)
    assert summary.remarks == (f'{tmp_path / "in" / "pipe.csv"}: no regular file, left out.',)


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
    with pytest.raises(BatchError, match='b.csv and .*b.csv.npz would both give b.csv.npz'):
        process_files(tree, two_link(), tree / 'out', suffix='.npz', workers=0)


def test_output_folder_that_cannot_be_made_is_told(tree):
    with pytest.raises(BatchError, match='a.npz cannot be made'):
        process_files(tree, two_link(), tree / 'a.npz', workers=0)


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


def test_fingerprint_of_a_robot_knows_its_every_number():
    found = {name: fingerprint_of(make()) for name, make in CHANGES.items()}
    found['none'] = fingerprint_of(two_link())
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize('field', [field.name for field in fields(RobotModel)])
def test_fingerprint_of_a_robot_knows_each_of_its_attributes(field):
    model = two_link()
    other = {'something': 'else'} if field in ('links', 'friction') else ('something', 'else')
    assert fingerprint_of(replace(model, **{field: other})) != fingerprint_of(model)


def test_fingerprint_does_not_depend_on_use_or_process():
    model = RobotModel.from_urdf(share_file('urdf/panda.urdf'))
    laws = {'panda_joint3': Viscous(0.1), 'panda_joint1': Coulomb(0.2)}
    drives = {'panda_joint2': actuators.SeriesElastic(actuators.CubicSpring(300.0, 4.0), 0.1)}
    robot = actuators.Actuators(model.with_friction(laws), drives)
    before = fingerprint_of(robot)
    robot.model.warm_up(1)
    assert fingerprint_of(robot) == before
    turned = dict(reversed(laws.items()))
    assert fingerprint_of(actuators.Actuators(model.with_friction(turned), drives)) == before
    code = """
import pickle, sys
from hodyn_ros.batch.fingerprint import fingerprint_of
print(fingerprint_of(pickle.load(sys.stdin.buffer)))
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


@pytest.mark.parametrize(
    ('a', 'b'),
    [
        (1, 1.0), (1, True), ('1', 1), ((1, 2), [1, 2]), ((1, (2,)), ((1, 2),)),
        (('ab',), ('a', 'b')),
        ({'a': 1}, {'a': 2}), (np.zeros(2), np.zeros((2, 1))), (np.zeros(1), np.float64(0.0)),
        (np.float32(1.0), np.float64(1.0)), (None, 'None'), (Viscous(1.0), Coulomb(1.0)),
        ({1, 2}, {1, 3}), (int, float), (len, max),
    ],
)
def test_fingerprint_tells_values_apart(a, b):
    assert fingerprint_of(a) != fingerprint_of(b)
    assert fingerprint_of(a) == fingerprint_of(a)


def test_fingerprint_of_equal_values_is_equal():
    assert fingerprint_of({'a': 1, 'b': 2}) == fingerprint_of({'b': 2, 'a': 1})
    assert fingerprint_of({3, 1, 2}) == fingerprint_of({1, 2, 3})
    assert fingerprint_of(np.array([0.0])) == fingerprint_of(np.array([-0.0]))
    strided = np.arange(10.0)[::2]
    assert fingerprint_of(strided) == fingerprint_of(strided.copy())


def test_quick_fingerprint_sees_time_and_size(tmp_path):
    path = tmp_path / 'file'
    path.write_bytes(bytes(100))
    os.utime(path, ns=(0, 10**18))
    before = input_fingerprint(path)
    path.write_bytes(bytes(100))
    os.utime(path, ns=(0, 10**18))
    assert difference(before, input_fingerprint(path)) == ''
    os.utime(path, ns=(0, 10**18 + 1))
    assert 'written again' in difference(before, input_fingerprint(path))
    path.write_bytes(bytes(101))
    assert 'bytes before' in difference(before, input_fingerprint(path))


def test_content_fingerprint_sees_every_byte_and_no_time(tmp_path):
    path = tmp_path / 'file'
    content = bytearray(3 << 20)
    path.write_bytes(content)
    before = input_fingerprint(path, 'content')
    os.utime(path, ns=(0, 10**18))
    assert input_fingerprint(path, 'content') == before
    content[2 << 20] = 1
    path.write_bytes(content)
    assert 'other content' in difference(before, input_fingerprint(path, 'content'))
    assert difference(before, input_fingerprint(path)) == (
        'another kind of fingerprint was asked for'
    )


def test_fingerprint_of_a_bag_knows_all_its_files(tree):
    before = input_fingerprint(tree / 'bag', 'content')
    (tree / 'bag' / 'bag_0.mcap').rename(tree / 'bag' / 'bag_1.mcap')
    assert input_fingerprint(tree / 'bag', 'content') != before
