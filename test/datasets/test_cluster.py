"""The same function on a Dask cluster, two workers of which one is killed on the way."""

import os
import signal

import pytest
from support.batch_tools import (
    assert_complete,
    make_folder,
    two_link,
)

distributed = pytest.importorskip('distributed')
# Warnings of Dask come as slow as the machine is.
pytestmark = [pytest.mark.needs('distributed'), pytest.mark.filterwarnings('default')]


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

    again = processed(model)
    assert (again.kept, again.computed) == (30, 0)
