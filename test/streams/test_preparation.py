"""Which robot is in use while others are made ready, without ROS."""

import pytest
from support.robots import HEAVIER_TWO_LINK, TWO_LINK
from support.stream_host import Host

from hodyn_ros import RobotModel
from hodyn_ros.errors import ModelError
from hodyn_ros.streams.preparation import RobotPreparation
from hodyn_ros.streams.robot_in_use import Robot


class Bench:
    """Robots that are made ready when the worker is told to work."""

    def __init__(self):
        self.host = Host(None, waits=True)
        self.progress, self.changed, self.fault, self.meanwhile = 0, [], None, []
        self.robots = RobotPreparation(
            self.host,
            lambda xml: lambda: self.make(xml),
            self.finish,
            self.note_progress,
            self.changed.append,
        )

    def make(self, xml):
        while self.meanwhile:
            self.robots.request(self.meanwhile.pop())
        return RobotModel.from_urdf(xml)

    def finish(self, xml, model):
        if self.fault is not None:
            raise self.fault
        return Robot(model, None, xml)

    def note_progress(self):
        self.progress += 1

    def describe(self, *descriptions):
        for xml in descriptions:
            self.robots.request(xml)
        self.host.worker.work()
        return self.robots.state


@pytest.fixture
def bench():
    return Bench()


def test_robot_is_in_use_once_it_is_made(bench):
    bench.robots.request(TWO_LINK)
    assert bench.robots.state == (None, '', True)
    with pytest.raises(ModelError, match='is being made ready'):
        bench.robots.ready()
    robot, _, is_under_way = bench.describe()
    assert robot.description == TWO_LINK and not is_under_way
    assert (len(bench.changed), bench.progress) == (1, 2)


def test_refused_description_leaves_the_robot_before_in_use(bench):
    bench.describe(TWO_LINK)
    robot, why, is_under_way = bench.describe('<robot')
    assert robot.description == TWO_LINK and why and not is_under_way
    (text,) = bench.host.texts('error')
    assert text.startswith('Robot description refused: ')
    assert text.endswith(' The robot before stays in use.')
    assert bench.describe(TWO_LINK) == (robot, '', False)  # takes back what was said
    bench.fault = RuntimeError('no robot today')
    assert bench.describe(HEAVIER_TWO_LINK)[0] is robot
    assert bench.robots.error == "Internal error: RuntimeError('no robot today')"
    assert any('Traceback' in text for text in bench.host.texts('error'))


def test_newest_description_wins_whichever_is_made_first(bench):
    assert bench.describe(TWO_LINK, HEAVIER_TWO_LINK)[0].description == HEAVIER_TWO_LINK
    assert len(bench.changed) == 1, 'the older one was not even made'
    robot, _, is_under_way = bench.describe(TWO_LINK, HEAVIER_TWO_LINK)
    assert robot.description == HEAVIER_TWO_LINK and not is_under_way


def test_description_that_comes_while_another_robot_is_made_follows_it(bench):
    bench.meanwhile = [HEAVIER_TWO_LINK]
    robot, _, is_under_way = bench.describe(TWO_LINK)
    assert robot.description == HEAVIER_TWO_LINK and not is_under_way
    assert len(bench.changed) == 2
