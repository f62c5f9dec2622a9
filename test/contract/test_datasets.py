"""Data sets: each result is that of its file alone, and a run that ended is gone on with."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from support.command_tools import NAMES, efforts_of, swinging

from hodyn_ros import RobotModel
from hodyn_ros.datasets import BatchError, DatasetRun, process_files
from hodyn_ros.files import read_results

MODEL = RobotModel.from_urdf('two_link')
TIMES = 0.01 * np.arange(50)


def made(folder, count):
    """Files of motions, some in a folder below, and their efforts by names of results."""
    (folder / 'in' / 'more').mkdir(parents=True)
    efforts = {}
    for i in range(count):
        name = f'{"more/" if i % 3 == 2 else ""}m{i}.npz'
        motion = swinging(TIMES, 0.1 + 0.05 * i)
        np.savez(folder / 'in' / name, time=TIMES, motion=motion, joint_names=NAMES)
        efforts[name] = efforts_of(motion)
    return efforts


def run(folder, workers=0, progress=None, **options):
    options = {'workers': workers, 'suffix': '.npz', **options}
    return process_files(
        DatasetRun(MODEL, folder / 'in', folder / 'out', **options), progress
    )


def results_in(folder):
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob('*.npz')}
    return {name: path for name, path in paths.items() if '_hodyn' not in name}


def assert_complete(folder, efforts):
    """Every motion has its result, once, right to the last sample."""
    found = results_in(folder / 'out')
    assert set(found) == set(efforts)
    for name, expected in efforts.items():
        effort = read_results(found[name]).effort
        near = 1e-12 * np.abs(expected).max()
        np.testing.assert_allclose(effort, expected, rtol=0, atol=near)


def test_results_of_all_cores_are_those_of_each_file_and_are_kept(tmp_path):
    efforts = made(tmp_path, 6)
    summary = run(tmp_path, workers=2)
    assert (summary.total, summary.computed, summary.samples) == (6, 6, 300)
    assert_complete(tmp_path, efforts)
    before = {name: path.stat() for name, path in results_in(tmp_path / 'out').items()}
    again = run(tmp_path)
    assert (again.kept, again.computed) == (6, 0)
    assert before == {n: p.stat() for n, p in results_in(tmp_path / 'out').items()}


def test_inputs_and_results_that_changed_are_computed_anew(tmp_path):
    efforts = made(tmp_path, 3)
    run(tmp_path)
    motion = swinging(TIMES, 0.7)
    np.savez(tmp_path / 'in' / 'm0.npz', time=TIMES, motion=motion, joint_names=NAMES)
    efforts['m0.npz'] = efforts_of(motion)
    (tmp_path / 'out' / 'm1.npz').write_bytes(b'')
    summary = run(tmp_path)
    assert (summary.computed, summary.kept) == (2, 1)
    assert_complete(tmp_path, efforts)


def test_a_broken_file_is_reported_and_the_others_are_computed(tmp_path):
    efforts = made(tmp_path, 4)
    (tmp_path / 'in' / 'm1.npz').write_bytes(b'no archive')
    del efforts['m1.npz']
    summary = run(tmp_path)
    assert (summary.computed, summary.failed) == (3, 1)
    assert 'm1.npz' in summary.errors.read_text() and 'read' in summary.errors.read_text()
    assert_complete(tmp_path, efforts)


def test_an_interrupted_run_loses_nothing_and_is_gone_on_with(tmp_path):
    efforts = made(tmp_path, 5)

    def interrupted(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, progress=interrupted)
    summary = run(tmp_path)
    assert (summary.kept, summary.computed) == (2, 3)
    assert_complete(tmp_path, efforts)


# Kills itself where a result gets its name after three are done, or else after the fourth.
KILLED = """
import os, signal, sys
from pathlib import Path
from hodyn_ros.datasets import DatasetRun, process_files

done = 0

def kill(event='os.rename', *_):
    if event == 'os.rename' and done >= 3:
        os.kill(os.getpid(), signal.SIGKILL)

def progress(now):
    global done
    done = now.done
    if done > 3:
        kill()

folder = Path(sys.argv[1])
run = DatasetRun('two_link', folder / 'in', folder / 'out', workers=0, suffix='.npz')
sys.addaudithook(kill)
process_files(run, progress)
"""


def test_a_killed_run_leaves_whole_results_and_is_gone_on_with(tmp_path):
    efforts = made(tmp_path, 6)
    done = subprocess.run([sys.executable, '-c', KILLED, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    for name, path in results_in(tmp_path / 'out').items():
        assert read_results(path).effort.shape == efforts[name].shape
    summary = run(tmp_path)
    assert summary.kept >= 3 and summary.kept + summary.computed == 6
    assert_complete(tmp_path, efforts)


def test_inputs_and_options_that_make_no_sense_are_refused(tmp_path):
    made(tmp_path, 1)
    for options, said in (
        ({'workers': -1}, 'workers is -1'),
        ({'suffix': '.mat'}, r"suffix is '\.mat', expected one of \.csv"),
    ):
        with pytest.raises(BatchError, match=said):
            run(tmp_path, **options)
    (tmp_path / 'in' / 'm0.npz').unlink()
    with pytest.raises(BatchError, match='no motion was found there'):
        run(tmp_path)
