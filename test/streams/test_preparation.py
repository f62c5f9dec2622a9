"""Which robot is in use while others are made ready, without ROS."""

import pytest
from support.robots import HEAVIER_TWO_LINK, TWO_LINK
from support.stream_host import Host, model_of

from hodyn_ros.errors import ModelError
from hodyn_ros.model.inertia import Payload
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.streams import preparation
from hodyn_ros.streams.preparation import CompiledRobots, RobotPreparation
from hodyn_ros.streams.robot import Robot


class Bench:
    """Robots that are made ready when the worker is told to work."""

    def __init__(self):
        self.host = Host(None, waits=True)
        self.progress, self.changed = 0, []
        self.robots = RobotPreparation(
            self.host,
            lambda xml: lambda: model_of(xml),
            lambda xml, model: Robot(model, None, xml),
            self.note_progress,
            self.changed.append,
        )

    def note_progress(self):
        self.progress += 1

    def work(self):
        self.host.worker.work()


@pytest.fixture
def bench():
    return Bench()


def test_robot_is_in_use_once_it_is_made(bench):
    bench.robots.request(TWO_LINK)
    assert bench.robots.state == (None, '', True)
    with pytest.raises(ModelError, match='is being made ready'):
        bench.robots.ready()
    bench.work()
    assert bench.robots.ready().description == TWO_LINK
    assert not bench.robots.is_under_way
    assert (len(bench.changed), bench.progress) == (1, 2)


def test_refused_description_leaves_the_robot_before_in_use(bench):
    bench.robots.request(TWO_LINK)
    bench.work()
    bench.robots.request('<robot')
    bench.work()
    robot, why, is_under_way = bench.robots.state
    assert robot.description == TWO_LINK
    assert why
    assert not is_under_way
    (text,) = bench.host.texts('error')
    assert text.startswith('Robot description refused: ')
    assert text.endswith(' The robot before stays in use.')
    bench.robots.request(TWO_LINK)  # takes back what was said
    assert bench.robots.state == (robot, '', False)


def test_newest_description_wins_whichever_is_made_first(bench):
    bench.robots.request(TWO_LINK)
    bench.robots.request(HEAVIER_TWO_LINK)
    bench.work()
    assert bench.robots.ready().description == HEAVIER_TWO_LINK
    assert len(bench.changed) == 1, 'the older one was not even made'


def test_description_in_use_that_comes_again_ends_the_wait_for_another(bench):
    bench.robots.request(TWO_LINK)
    bench.work()
    bench.robots.request(HEAVIER_TWO_LINK)
    bench.robots.request(TWO_LINK)
    assert not bench.robots.is_under_way
    bench.work()
    assert bench.robots.ready().description == TWO_LINK


def test_fault_of_ours_refuses_the_description_and_is_logged_with_its_place(
    bench, monkeypatch
):
    def fails(xml, model):
        raise RuntimeError('no robot today')

    monkeypatch.setattr(bench.robots, '_finish', fails)
    bench.robots.request(TWO_LINK)
    bench.work()
    assert bench.robots.error == "Internal error: RuntimeError('no robot today')"
    assert any('Traceback' in text for text in bench.host.texts('error'))


def test_wait_that_is_long_is_told_after_twice_the_time(bench, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(preparation.time, 'monotonic', lambda: now[0])
    bench.robots.request(TWO_LINK)
    told = []
    for now[0] in (1.9, 2.0, 3.9, 4.0, 7.9, 8.0):
        bench.robots.tell_progress()
        told.append(len(bench.host.texts('info')))
    assert told == [0, 1, 1, 2, 2, 3]


def test_payloads_of_a_robot_that_cannot_be_made_are_not_kept(monkeypatch):
    host = Host(NodeSettings())
    monkeypatch.setattr(preparation, '_compile', lambda *_: None)
    monkeypatch.setattr(preparation, 'prepare_variants', lambda *_: None)
    robots = CompiledRobots(host, tuple, lambda: None, lambda made: None)
    robots.request(TWO_LINK)

    carried = Payload(
        'tool', 1.0, (0.0, 0.0, 0.1), ((0.01, 0.0, 0.0), (0.0, 0.01, 0.0), (0.0, 0.0, 0.01))
    )

    def fail(*_):
        raise ModelError('no such robot')

    with monkeypatch.context() as patch:
        patch.setattr(preparation, 'made_robot', fail)
        with pytest.raises(ModelError):
            robots.update_robot((carried,))
    robots.update_robot()
    assert robots.ready().payloads == ()
    robots.update_robot((carried,))
    assert robots.ready().payloads == (carried,)
