"""The same function on a Dask cluster, two workers of which one is killed on the way."""

import os
import signal

import pytest
from support.batch_tools import (
    Deadly,
    assert_complete,
    errors_in,
    make_folder,
    motion_of,
    two_link,
    write_npz,
)

from hodyn_ros.datasets import BatchError, DatasetRun, process, process_files

distributed = pytest.importorskip('distributed')


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    """Two workers, processes of their own that are started again when they die."""
    folder = tmp_path_factory.mktemp('cluster')
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=':0',
        local_directory=folder,
    ) as running:
        yield running


@pytest.fixture(scope='module')
def model():
    return two_link()


def test_cluster_that_loses_a_worker_loses_no_result_and_makes_none_twice(
    model, cluster, tmp_path, processed
):
    motions = make_folder(tmp_path / 'in', model, 30, N=3000)
    killed = []
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)

        def kill(progress):
            if progress.done < 5 or killed:
                return
            # One that has something to do, or else there were nothing to lose.
            busy = [worker for worker, tasks in client.processing().items() if tasks]
            if busy:
                killed.extend(client.run(os.getpid, workers=busy[:1]).values())
                os.kill(killed[0], signal.SIGKILL)

        summary = processed(model, scheduler=client, workers=None, progress=kill)
        assert client.status == 'running'  # it belongs to the caller
    assert killed
    assert (summary.total, summary.computed, summary.failed) == (30, 30, 0)
    assert summary.samples == 90_000
    assert_complete(tmp_path / 'out', model, motions)
    workers = {int(worker.rpartition(':')[2]) for worker in summary.peak_memory}
    assert workers
    assert os.getpid() not in workers

    again = processed(model)
    assert (again.kept, again.computed) == (30, 0)


def test_cluster_is_found_by_its_address_and_continues_what_processes_began(
    model, cluster, tmp_path, processed
):
    motions = make_folder(tmp_path / 'in', model, 4)
    only = [tmp_path / 'in' / 'motion000.npz', tmp_path / 'in' / 'motion001.npz']
    process_files(DatasetRun(model, only, tmp_path / 'out', workers=0, suffix='.npz'))
    summary = processed(model, scheduler=cluster.scheduler_address, workers=None)
    assert (summary.kept, summary.computed) == (2, 2)
    assert_complete(tmp_path / 'out', model, motions)


def test_errors_on_a_cluster_are_recorded(model, cluster, tmp_path, processed):
    motions = make_folder(tmp_path / 'in', model, 3)
    del motions['motion001.npz']
    (tmp_path / 'in' / 'motion001.npz').write_bytes(b'no archive')
    summary = processed(model, scheduler=cluster.scheduler_address, workers=None)
    assert (summary.computed, summary.failed) == (2, 1)
    (error,) = errors_in(tmp_path / 'out')
    assert 'cannot be read' in error['message']
    assert_complete(tmp_path / 'out', model, motions)


def test_stopped_run_leaves_no_tasks_on_the_cluster(model, cluster, tmp_path, processed):
    make_folder(tmp_path / 'in', model, 20)
    (tmp_path / 'in' / 'motion000.npz').write_bytes(b'no archive')
    with distributed.Client(cluster) as client:
        with pytest.raises(BatchError, match='motion000.npz'):
            processed(
                model, scheduler=client, stop_on_error=True, workers=None, suffix='.parquet'
            )
        assert {state.status for state in client.futures.values()} <= {'finished'}


def test_unreachable_cluster_is_told_in_words(model, tmp_path, monkeypatch, processed):
    make_folder(tmp_path / 'in', model, 1)
    with distributed.LocalCluster(
        n_workers=0, dashboard_address=':0', processes=False
    ) as empty:
        monkeypatch.setattr(process, 'PATIENCE', 0.1)
        with pytest.raises(BatchError, match='no worker'):
            processed(
                model, scheduler=empty.scheduler_address, workers=None, suffix='.parquet'
            )
    monkeypatch.setattr(process, 'CONNECTING', 0.1)
    with pytest.raises(BatchError, match='was not reached'):
        processed(model, scheduler='tcp://127.0.0.1:9', workers=None, suffix='.parquet')


@pytest.mark.slow
def test_file_that_kills_workers_of_a_cluster_is_an_error_like_others(
    cluster, tmp_path, processed
):
    model = two_link().with_friction({'elbow': Deadly()})
    motions = make_folder(tmp_path / 'in', model, 4)
    times, motion = motion_of(model, 50, 3)
    motion *= 1e9
    write_npz(tmp_path / 'in' / 'motion001.npz', model, times, motion)
    del motions['motion001.npz']
    summary = processed(model, scheduler=cluster.scheduler_address, workers=None)
    # Dask cannot tell which of the tasks of a worker has killed it, so others may fall under the
    # same suspicion; another run computes them.
    assert summary.failed >= 1
    assert 'motion001.npz' in {record['input'] for record in errors_in(tmp_path / 'out')}
    processed(model, workers=2)
    assert_complete(tmp_path / 'out', model, motions)
