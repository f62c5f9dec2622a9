"""Data sets of many motions: what is computed, what is kept, what is done again and why."""

import errno
import multiprocessing
import os
import signal
import sys

import pytest
from support.batch_tools import (
    Deadly,
    assert_complete,
    errors_in,
    make_folder,
    motion_of,
    outputs_in,
    recorded_in,
    two_link,
    write_npz,
)

from hodyn_ros import HodynError, RobotModel, actuators
from hodyn_ros.datasets import BatchError, DatasetRun, process_files


@pytest.fixture(scope='module')
def model():
    return two_link()


def rewrite_longer(path, model):
    times, motion = motion_of(model, 60, 1234)
    write_npz(path, model, times, motion)
    return motion


def test_results_of_inputs_with_numbers_in_their_names_are_told_apart(
    model, tmp_path, processed
):
    motions = {}
    for number in range(3):
        times, motion = motion_of(model, 10, number)
        motions[f'run#{number}.npz'] = motion
        write_npz(tmp_path / 'in' / f'run#{number}.npz', model, times, motion)
    options = {'workers': 0, 'suffix': '.npz'}
    processed(model)
    summary = process_files(
        DatasetRun(model, tmp_path / 'in' / 'run#1.npz', tmp_path / 'out', **options)
    )
    assert (summary.kept, summary.total) == (1, 1)
    assert_complete(tmp_path / 'out', model, motions)


def test_other_robot_is_computed_anew_and_said(model, tmp_path, processed):
    motions = make_folder(tmp_path / 'in', model, 3)
    processed(model)
    heavier = two_link(mass=2.0 + 1e-9)
    summary = processed(heavier)
    assert (summary.computed, summary.kept) == (3, 0)
    assert summary.remarks == ('3 results are computed anew: the robot changed.',)
    assert_complete(tmp_path / 'out', heavier, motions)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('change', 'said'),
    [
        ({'order': 1}, 'order (default before, 1 now) changed'),
        ({'derivatives': 'given'}, "derivatives (default before, 'given' now) changed"),
    ],
)
def test_other_options_are_computed_anew_and_said(change, said, model, tmp_path, processed):
    make_folder(tmp_path / 'in', model, 1)
    processed(model)
    summary = processed(model, computing=change)
    assert summary.computed == 1
    assert said in summary.remarks[0]


@pytest.mark.every_case
@pytest.mark.parametrize(
    'text', ['', '{}', '[' * 100_000, '{"output": "motion001.npz", "by']
)
def test_record_that_no_run_has_written_counts_for_nothing(
    text, model, tmp_path, processed
):
    motions = make_folder(tmp_path / 'in', model, 3)
    processed(model)
    path = tmp_path / 'out' / '_hodyn' / 'done.jsonl'
    lines = path.read_text().splitlines()
    path.write_text('\n'.join([*(line for line in lines if 'motion001' not in line), text]))
    summary = processed(model)
    assert (summary.computed, summary.kept) == (1, 2)
    assert_complete(tmp_path / 'out', model, motions)


def test_result_of_an_input_that_does_not_work_any_more_is_not_left(
    model, tmp_path, processed
):
    motions = make_folder(tmp_path / 'in', model, 2)
    processed(model)
    (tmp_path / 'in' / 'motion001.npz').write_bytes(b'no archive')
    summary = processed(model)
    assert summary.failed == 1
    del motions['motion001.npz']
    assert_complete(tmp_path / 'out', model, motions)


def test_killed_worker_loses_nothing(model, tmp_path, processed):
    motions = make_folder(tmp_path / 'in', model, 20, N=2000)
    killed = []

    def kill(progress):
        if progress.done == 4 and not killed:
            victim = multiprocessing.active_children()[0]
            killed.append(victim.pid)
            os.kill(victim.pid, signal.SIGKILL)

    summary = processed(model, workers=2, progress=kill)
    assert killed
    assert (summary.computed, summary.failed) == (20, 0)
    assert summary.samples == 40_000
    assert_complete(tmp_path / 'out', model, motions)


def test_file_that_kills_its_worker_is_an_error_like_others(tmp_path, processed):
    model = two_link().with_friction({'elbow': Deadly()})
    motions = make_folder(tmp_path / 'in', model, 5)
    times, motion = motion_of(model, 50, 3)
    motion *= 15.0
    write_npz(tmp_path / 'in' / 'motion001.npz', model, times, motion)
    del motions['motion001.npz']
    summary = processed(model, workers=2)
    assert (summary.computed, summary.failed) == (4, 1)
    (error,) = errors_in(tmp_path / 'out')
    assert error['input'] == 'motion001.npz'
    assert 'Worker processes died of this file' in error['message']
    assert_complete(tmp_path / 'out', model, motions)


def test_two_runs_do_not_share_an_output_folder(model, tmp_path, processed):
    make_folder(tmp_path / 'in', model, 2)
    refused = []

    def again(progress):
        if not refused:
            with pytest.raises(BatchError, match='in use by another run') as caught:
                processed(model)
            refused.append(caught)

    summary = processed(model, progress=again)
    assert refused
    assert summary.computed == 2


def test_input_that_changes_during_the_run_is_an_error(model, tmp_path, processed):
    motions = make_folder(tmp_path / 'in', model, 2)
    path = tmp_path / 'in' / 'motion001.npz'

    def change(progress):
        if progress.latest == 'motion000.npz':
            rewrite_longer(path, model)

    processed(model, progress=change)
    (error,) = errors_in(tmp_path / 'out')
    assert 'was changed during the run' in error['message']
    del motions['motion001.npz']
    assert_complete(tmp_path / 'out', model, motions)


@pytest.mark.parametrize(('call', 'successes'), [('replace', 0), ('fsync', 1)])
def test_full_disk_ends_the_run_and_leaves_nothing_half(
    call, successes, model, tmp_path, monkeypatch, processed
):
    motions = make_folder(tmp_path / 'in', model, 3)
    genuine = getattr(os, call)
    fails = []

    def full(*arguments):
        if call == 'fsync' or 'motion000.npz' in str(arguments[1]):
            fails.append(arguments)
            if len(fails) > successes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return genuine(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(BatchError, match='cannot be written.*No space left'):
            processed(model)
    assert fails
    done = outputs_in(tmp_path / 'out')
    recorded = recorded_in(tmp_path / 'out')
    assert 'motion000.npz' not in recorded
    assert set(recorded) <= set(done)
    summary = processed(model)
    assert summary.kept == len(recorded)
    assert_complete(tmp_path / 'out', model, motions)


def test_packages_that_are_missing_are_named_with_their_extra(
    model, tmp_path, monkeypatch, processed
):
    make_folder(tmp_path / 'in', model, 1)
    monkeypatch.setitem(sys.modules, 'distributed', None)
    with pytest.raises(BatchError, match=r"pip install 'hodyn_ros\[cluster\]'"):
        processed(model, scheduler='tcp://127.0.0.1:9')


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        ({'computing': {'order': -1}}, 'order is -1, expected a whole number from 0 on'),
        ({'computing': {'rates': 9.0}}, 'computing has rates, expected order, derivatives'),
        ({'reading': {'joints': []}}, 'reading has joints, expected topic, joint_names'),
        (
            {'actuators': actuators.Actuators(RobotModel.from_urdf('panda'), {})},
            'are those of',
        ),
    ],
)
def test_wrong_options_are_refused_in_words(wrong, message, model, tmp_path, processed):
    make_folder(tmp_path / 'in', model, 1)
    with pytest.raises(HodynError) as caught:
        processed(model, **wrong)
    assert message in str(caught.value)
