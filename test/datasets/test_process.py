"""Data sets of many motions: what is computed, what is kept, what is done again and why."""

import errno
import json
import multiprocessing
import os
import shutil
import signal
import socket
import sys

import numpy as np
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

from hodyn_ros import HodynError, RobotModel, actuators, inverse_dynamics
from hodyn_ros.datasets import BatchError, DatasetRun, process, process_files, worker
from hodyn_ros.files import Samples, compute, read_motion, read_results, write_results
from hodyn_ros.resources import share_file


@pytest.fixture(scope='module')
def model():
    return two_link()


@pytest.mark.parametrize('suffix', ['.npz', '.csv', '.parquet'])
def test_every_file_of_a_folder_has_its_result(suffix, model, tmp_path, processed):
    if suffix == '.parquet':
        pytest.importorskip('pyarrow')
    motions = make_folder(tmp_path / 'in', model, 5)
    summary = processed(model, suffix=suffix, chunk=7)
    assert_complete(tmp_path / 'out', model, motions, suffix)
    assert (summary.total, summary.computed, summary.kept, summary.failed) == (5, 5, 0, 0)
    assert (summary.samples, summary.motions) == (250, 5)
    assert summary.bytes_read == sum(
        path.stat().st_size for path in (tmp_path / 'in').rglob('*.npz')
    )
    assert summary.errors is None


def test_processes_compute_what_one_process_computes(model, tmp_path, processed):
    motions = make_folder(tmp_path / 'in', model, 6)
    seen = []
    summary = processed(model, workers=2, progress=seen.append)
    assert_complete(tmp_path / 'out', model, motions)
    assert summary.computed == 6
    assert all(memory > 1e7 for memory in summary.peak_memory.values())
    assert not any(worker.endswith(f':{os.getpid()}') for worker in summary.peak_memory)
    assert [progress.done for progress in seen] == list(range(7))
    assert {progress.total for progress in seen} == {6}
    assert {progress.latest for progress in seen} == {'', *motions}
    assert seen[-1].samples == summary.samples == 300
    assert seen[-1].bytes_read == summary.bytes_read
    assert multiprocessing.active_children() == []


def test_runs_side_by_side_want_no_port_of_each_other(model, tmp_path, recwarn, processed):
    make_folder(tmp_path / 'in', model, 2)
    with socket.socket() as other:
        try:
            other.bind(('127.0.0.1', 8787))  # where Dask would listen
            other.listen()
        except OSError:
            pass  # It is taken already.
        summary = processed(model, workers=2)
    assert summary.computed == 2
    assert not [item for item in recwarn if 'Port' in str(item.message)]


def test_second_run_keeps_what_is_done_and_adds_what_is_new(model, tmp_path, processed):
    motions = make_folder(tmp_path / 'in', model, 3)
    processed(model)
    before = {name: (tmp_path / 'out' / name).stat().st_ino for name in motions}
    times, motions['new.npz'] = motion_of(model, 20, 99)
    write_npz(tmp_path / 'in' / 'new.npz', model, times, motions['new.npz'])
    summary = processed(model)
    assert (summary.total, summary.computed, summary.kept) == (4, 1, 3)
    assert summary.remarks == ()
    assert {name: (tmp_path / 'out' / name).stat().st_ino for name in before} == before
    assert_complete(tmp_path / 'out', model, motions)


def rewrite_content(path, model):
    """Change a file, but not its size."""
    stat = path.stat()
    times, motion = motion_of(model, 50, 1234)
    write_npz(path, model, times, motion)
    assert path.stat().st_size == stat.st_size
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    return motion


def rewrite_longer(path, model):
    times, motion = motion_of(model, 60, 1234)
    write_npz(path, model, times, motion)
    return motion


@pytest.mark.parametrize(
    ('change', 'kind'),
    [
        (rewrite_content, 'quick'),
        (rewrite_content, 'content'),
        (rewrite_longer, 'quick'),
    ],
)
def test_changed_input_is_computed_anew_and_said(change, kind, model, tmp_path, processed):
    motions = make_folder(tmp_path / 'in', model, 3)

    processed(model, fingerprint=kind)
    motions['motion001.npz'] = change(tmp_path / 'in' / 'motion001.npz', model)
    summary = processed(model, fingerprint=kind)
    assert (summary.computed, summary.kept) == (1, 2)
    assert summary.remarks == ('1 result is computed anew: the input changed.',)
    assert_complete(tmp_path / 'out', model, motions)


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


def test_copy_of_an_input_is_the_same_to_those_who_ask_for_content(
    model, tmp_path, processed
):
    make_folder(tmp_path / 'in', model, 2)
    processed(model, fingerprint='content')
    os.utime(tmp_path / 'in' / 'motion000.npz')
    summary = processed(model, fingerprint='content')
    assert (summary.computed, summary.kept) == (0, 2)


def test_other_robot_is_computed_anew_and_said(model, tmp_path, processed):
    motions = make_folder(tmp_path / 'in', model, 3)
    processed(model)
    heavier = two_link(mass=2.0 + 1e-9)
    with pytest.raises(BatchError, match='the robot changed'):
        processed(heavier, on_change='refuse')
    assert_complete(tmp_path / 'out', model, motions)
    summary = processed(heavier)
    assert (summary.computed, summary.kept) == (3, 0)
    assert summary.remarks == ('3 results are computed anew: the robot changed.',)
    assert_complete(tmp_path / 'out', heavier, motions)


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        ({'order': 1}, 'order (2 before, 1 now) changed'),
        ({'joint_names': ('elbow', 'shoulder')}, 'joint_names (None before'),
        ({'derivatives': 'given'}, "derivatives ('auto' before, 'given' now) changed"),
    ],
)
def test_other_options_are_computed_anew_and_said(change, said, model, tmp_path, processed):
    make_folder(tmp_path / 'in', model, 1)
    options = {'workers': 0, 'suffix': '.npz'}
    processed(model)
    summary = process_files(
        DatasetRun(model, tmp_path / 'in', tmp_path / 'out', **{**options, **change})
    )
    assert summary.computed == 1
    assert said in summary.remarks[0]


def test_chunks_and_workers_are_no_reason_to_compute_anew(model, tmp_path, processed):
    make_folder(tmp_path / 'in', model, 2)
    processed(model, chunk=3, suffix='.parquet')
    summary = processed(model, workers=1, chunk=11, suffix='.parquet')
    assert summary.kept == 2


def test_actuators_belong_to_what_a_result_is_made_with(model, tmp_path, processed):
    make_folder(tmp_path / 'in', model, 1)

    def springs(stiffness):
        spring = actuators.LinearSpring(stiffness)
        return actuators.Actuators(model, {'elbow': actuators.SeriesElastic(spring, 0.1)})

    processed(model, actuators=springs(500.0))
    soft = read_results(tmp_path / 'out' / 'motion000.npz')
    again = processed(model, actuators=springs(500.0))
    assert again.kept == 1
    stiff = processed(model, actuators=springs(900.0))
    assert stiff.remarks == ('1 result is computed anew: the actuators changed.',)
    found = read_results(tmp_path / 'out' / 'motion000.npz')
    np.testing.assert_allclose(
        900.0 * found.motors.deflection, 500.0 * soft.motors.deflection, atol=1e-9
    )


@pytest.mark.parametrize('damage', ['removed', 'cut off'])
def test_lost_result_is_made_again(damage, model, tmp_path, processed):
    motions = make_folder(tmp_path / 'in', model, 2)
    processed(model)
    path = tmp_path / 'out' / 'motion000.npz'
    if damage == 'removed':
        path.unlink()
    else:
        os.truncate(path, 100)
    summary = processed(model)
    assert (summary.computed, summary.kept) == (1, 1)
    said = ('1 result is computed anew: the result is not the one that was written.',)
    assert summary.remarks == said
    assert_complete(tmp_path / 'out', model, motions)


@pytest.mark.parametrize(
    'text',
    [
        '',
        '{"version":3,"na',
        '\0\xff',
        '[1]',
        '5',
        '{}',
        '{"task": "a"}',
        '[' * 100_000,
        lambda record: {**record, 'made_with': 'x'},
        lambda record: {**record, 'made_with': {}},
        lambda record: {**record, 'made_with': {**record['made_with'], 'the input': [1]}},
        lambda record: {**record, 'failures': 'none'},
        lambda record: {**record, 'bytes': '1'},
        lambda record: {**record, 'more': 1},
    ],
)
def test_record_that_no_run_has_written_counts_for_nothing(
    text, model, tmp_path, processed
):
    motions = make_folder(tmp_path / 'in', model, 3)
    processed(model)
    path = tmp_path / 'out' / '_hodyn' / 'records' / 'motion001.npz.json'
    if callable(text):
        text = json.dumps(text(json.loads(path.read_text())))
    path.write_text(text, encoding='latin-1')
    summary = processed(model)
    assert (summary.computed, summary.kept) == (1, 2)
    assert_complete(tmp_path / 'out', model, motions)


def test_errors_of_files_are_recorded_and_the_rest_is_computed(model, tmp_path, processed):
    motions = make_folder(tmp_path / 'in', model, 4)
    del motions['motion001.npz'], motions['more/motion002.npz']
    (tmp_path / 'in' / 'motion001.npz').write_bytes(b'no archive')
    times, motion = motion_of(model, 50, 7)
    motion[31, 0, 1] = np.nan
    write_npz(tmp_path / 'in' / 'more' / 'motion002.npz', model, times, motion)
    summary = processed(model, chunk=10)
    assert (summary.total, summary.computed, summary.failed) == (4, 2, 2)
    assert_complete(tmp_path / 'out', model, motions)
    assert summary.errors == tmp_path / 'out' / '_hodyn' / 'errors.jsonl'
    errors = {record['input']: record for record in errors_in(tmp_path / 'out')}
    assert set(errors) == {'motion001.npz', 'more/motion002.npz'}
    assert 'cannot be read' in errors['motion001.npz']['message']
    assert 'sample 31' in errors['more/motion002.npz']['message']

    # What had an error is tried again.
    times, motions['motion001.npz'] = motion_of(model, 50, 8)
    write_npz(tmp_path / 'in' / 'motion001.npz', model, times, motions['motion001.npz'])
    summary = processed(model, chunk=10)
    assert (summary.computed, summary.kept, summary.failed) == (1, 2, 1)
    assert [record['input'] for record in errors_in(tmp_path / 'out')] == [
        'more/motion002.npz'
    ]
    assert_complete(tmp_path / 'out', model, motions)


def test_first_error_ends_the_run_on_request(model, tmp_path, processed):
    motions = make_folder(tmp_path / 'in', model, 4)
    (tmp_path / 'in' / 'motion001.npz').write_bytes(b'no archive')
    with pytest.raises(BatchError, match='motion001.npz.*cannot be read'):
        processed(model, stop_on_error=True)
    # They come in the order of their names.
    assert outputs_in(tmp_path / 'out') == ['more/motion002.npz', 'motion000.npz']
    del motions['motion001.npz']
    summary = processed(model)
    assert (summary.computed, summary.kept, summary.failed) == (1, 2, 1)
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


def test_results_of_inputs_that_are_not_given_any_more_are_left_and_said(
    model, tmp_path, processed
):
    motions = make_folder(tmp_path / 'in', model, 2)
    processed(model)
    (tmp_path / 'in' / 'motion001.npz').unlink()
    for _ in range(2):
        summary = processed(model)
        assert (summary.total, summary.kept) == (1, 1)
        assert 'not among those of this run' in summary.remarks[0]
        assert_complete(tmp_path / 'out', model, motions)


def test_error_in_the_function_that_shows_progress_loses_nothing(
    model, tmp_path, processed
):
    motions = make_folder(tmp_path / 'in', model, 4)

    def show(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    options = {'workers': 2, 'suffix': '.npz'}
    with pytest.raises(KeyboardInterrupt):
        processed(model, workers=2, progress=show)
    assert multiprocessing.active_children() == []
    summary = process_files(
        DatasetRun(model, tmp_path / 'in', tmp_path / 'out', **{**options, 'workers': 0})
    )
    assert summary.kept >= 2
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
    # Workers before and after: the one that was killed is replaced.
    assert len(summary.peak_memory) >= 2


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
    assert 'Worker processes died of this task' in error['message']
    assert_complete(tmp_path / 'out', model, motions)


def test_robot_of_local_classes_is_refused_by_processes_only(model, tmp_path, processed):
    class Local(Deadly):
        pass

    local = model.with_friction({'elbow': Local()})
    make_folder(tmp_path / 'in', model, 2)
    with pytest.raises(BatchError, match='workers=1'):
        processed(local, workers=2, suffix='.parquet')
    assert processed(local, workers=1, suffix='.parquet').computed == 2


def test_two_runs_do_not_share_an_output_folder(model, tmp_path, processed):
    make_folder(tmp_path / 'in', model, 2)
    refused = []

    def again(progress):
        if not refused:
            with pytest.raises(BatchError, match='in use by another run') as caught:
                processed(model, suffix='.parquet')
            refused.append(caught)

    summary = processed(model, suffix='.parquet', progress=again)
    assert refused
    assert summary.computed == 2


def test_worker_of_an_earlier_run_cannot_put_anything_into_its_place(
    model, tmp_path, monkeypatch, processed
):
    make_folder(tmp_path / 'in', model, 2)
    left_over = []

    def watch(job, task):
        left_over.append((job, task))
        return worker.execute(job, task)

    monkeypatch.setattr(process, 'execute', watch)
    processed(model, workers=1)
    shutil.rmtree(tmp_path / 'out')
    late = []

    def finish(progress):
        if not late:
            with pytest.raises(BatchError, match='another run has begun'):
                worker.execute(*left_over[0])
            late.append(outputs_in(tmp_path / 'out'))

    processed(model, workers=1, progress=finish)
    assert late == [[]]


def test_run_whose_folder_is_taken_away_ends_and_keeps_what_is_done(
    model, tmp_path, processed
):
    motions = make_folder(tmp_path / 'in', model, 12)

    def take_away(progress):
        if progress.done == 3:
            # It may be said twice: a task that is under way meanwhile can fail.
            shutil.rmtree(tmp_path / 'out' / '_hodyn' / 'runs', ignore_errors=True)

    with pytest.raises(BatchError, match='another run has begun|cannot be written'):
        processed(model, workers=2, progress=take_away)
    assert multiprocessing.active_children() == []
    recorded = recorded_in(tmp_path / 'out')
    assert 3 <= len(recorded) < 12
    summary = processed(model, workers=2)
    assert summary.kept == len(recorded)
    assert_complete(tmp_path / 'out', model, motions)


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


@pytest.mark.parametrize(
    ('call', 'successes'), [('replace', 0), ('replace', 1), ('fsync', 1)]
)
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


def test_memory_does_not_grow_with_the_file(model, tmp_path):
    found = []
    for name, N in (('small', 1000), ('large', 400_000)):
        times, motion = motion_of(model, N, 5)
        for copy in 'ab':  # workers of their own, which have done nothing else before
            write_npz(tmp_path / name / f'{copy}.npz', model, times, motion)
        summary = process_files(
            DatasetRun(
                model,
                tmp_path / name,
                tmp_path / 'out' / name,
                workers=2,
                chunk=1000,
                suffix='.npz',
            )
        )
        assert summary.samples == 2 * N
        found.append(max(summary.peak_memory.values()))
    size = (tmp_path / 'large' / 'a.npz').stat().st_size
    assert size > 30e6
    assert found[1] - found[0] < 0.25 * size


def test_bags_are_inputs_and_outputs(model, tmp_path, processed):
    pytest.importorskip('rosbags')
    expected = {}
    (tmp_path / 'in' / 'more').mkdir(parents=True)
    for number, name in enumerate(('folder', 'single.mcap', 'more/deep.db3')):
        times, motion = motion_of(model, 30, number)
        write_results(
            tmp_path / 'in' / name,
            compute(model, Samples(model.joint_names, times, motion, start=10**18)),
        )
        expected[name] = inverse_dynamics(model, motion, algorithm='body_fixed')
    for _ in range(2):
        summary = processed(model)
    assert (summary.total, summary.kept, summary.failed) == (3, 3, 0)
    assert outputs_in(tmp_path / 'out') == [
        'folder.npz',
        'more/deep.db3.npz',
        'single.mcap.npz',
    ]
    for name, effort in expected.items():
        found = read_results(tmp_path / 'out' / f'{name}.npz').effort
        np.testing.assert_allclose(found, effort, rtol=0, atol=1e-9 * np.abs(effort).max())
    bags = process_files(
        DatasetRun(model, tmp_path / 'out', tmp_path / 'bags', workers=0, suffix='.mcap')
    )
    assert bags.computed == 3
    motion = read_motion(tmp_path / 'bags' / 'folder.npz.mcap').motion
    np.testing.assert_allclose(motion, motion_of(model, 30, 0)[1], rtol=1e-12, atol=1e-12)


def test_robot_may_be_given_by_its_file(tmp_path, processed):
    path = share_file('urdf/panda.urdf')
    model = RobotModel.from_urdf(path)
    motions = make_folder(tmp_path / 'in', model, 1)
    processed(path)
    assert_complete(tmp_path / 'out', model, motions)


@pytest.mark.parametrize(
    ('module', 'options', 'extra'),
    [
        ('pyarrow.parquet', {'motion_column': 'motion'}, 'tables'),
        ('distributed', {'scheduler': 'tcp://127.0.0.1:9'}, 'cluster'),
    ],
)
def test_packages_that_are_missing_are_named_with_their_extra(
    module, options, extra, model, tmp_path, monkeypatch, processed
):
    make_folder(tmp_path / 'in', model, 1)
    (tmp_path / 'in' / 'motion000.npz').rename(tmp_path / 'in' / 'a.parquet')
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BatchError, match=rf'pip install hodyn_ros\[{extra}\]'):
        process_files(
            DatasetRun(
                model, tmp_path / 'in', tmp_path / 'out', stop_on_error=True, **options
            )
        )


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        ({'order': -1}, 'order is -1, expected a whole number from 0 on'),
        ({'order': 1.5}, 'order is 1.5'),
        ({'chunk': 0}, 'chunk is 0'),
        ({'workers': -1}, 'workers is -1'),
        ({'part_rows': True}, 'part_rows is True'),
        ({'suffix': '.mat'}, "suffix is '.mat', expected one of .csv, .npz"),
        ({'suffix': '.csv', 'motion_column': 'motion'}, 'which are .parquet'),
        ({'fingerprint': 'name'}, "fingerprint is 'name'"),
        ({'on_change': 'weep'}, "on_change is 'weep'"),
        ({'derivatives': 'guess'}, "derivatives is 'guess'"),
        ({'order': 40}, 'order is'),
        (
            {'actuators': actuators.Actuators(RobotModel.from_urdf('panda'), {})},
            'are those of',
        ),
        ({'actuators': 3}, 'are those of none, but the model has shoulder, elbow'),
        ({'scheduler': 5}, 'The scheduler is 5'),
    ],
)
def test_wrong_options_are_refused_in_words(wrong, message, model, tmp_path, processed):
    make_folder(tmp_path / 'in', model, 1)
    with pytest.raises(HodynError) as caught:
        process_files(
            DatasetRun(model, tmp_path / 'in', tmp_path / 'out', **{'workers': 0, **wrong})
        )
    assert message in str(caught.value)
