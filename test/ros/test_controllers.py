"""What the node sends to controllers: trajectories with efforts, and streams of commands."""

from __future__ import annotations

from time import monotonic

import numpy as np
import pytest
from std_msgs.msg import Float64MultiArray
from support import robots
from support.messages import FIELDS, GRAVITY, NAMES, joint_trajectory, samples
from support.oracles import taylor_rnea, taylor_terms
from support.ros_harness import TIMEOUT, Harness, node_maker, own_domain
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.streams.motion_stream import LEAD_IN
from hodyn_ros.streams.timeline import nanoseconds
from hodyn_ros.trajectory.jtc import jtc_motion

FRICTION = 0.4
TIMES = (0.0, 0.4, 0.9)
LONG = (0.0, 20.0, 60.0)  # of which a busy machine streams samples enough
POSITIONS = ((0.0, 0.0), (0.5, -0.4), (0.2, 0.3))


USUAL = {
    'command.effort': 'full',
    'command.friction': True,
    'command.effort_tolerance': 0.02,
    'command.joints': ['shoulder', 'elbow'],
    'command.interfaces': ['effort'],
    'max_trajectory_points': 10_000,
    'interpolation': 'spline',
    'publish_rate': 200.0,
}


class Station(Harness):
    """A node with the two-link arm and a listener to what it sends to controllers."""

    def __init__(self):
        super().__init__({f'friction.{name}.viscous': FRICTION for name in NAMES} | USUAL)
        self.listen(JointTrajectory, 'hodyn_node/controller_trajectory')
        self.listen(Float64MultiArray, 'hodyn_node/commands')

    def move(self, positions=POSITIONS, times=TIMES):
        """Send a trajectory and return the whole answer."""
        count = len(self.messages['hodyn_node/effort_trajectory'])
        self.publishers['joint_trajectory'].publish(joint_trajectory(positions, times))
        return self.received('effort_trajectory', count + 1)[-1]


@pytest.fixture(scope='module')
def shared():
    made = Station()
    yield made
    made.close()


@pytest.fixture
def station(shared):
    """The same, with the usual parameters and nothing under way."""
    # Another robot in between ends what still runs.
    shared.describe_and_wait(robots.OTHER_JOINTS)
    shared.describe_and_wait(robots.TWO_LINK)
    assert shared.set(**USUAL).successful
    # What is still on its way to the client was sent before the next report.
    shared.messages['/diagnostics'].clear()
    shared.status('model', lambda s: True)
    shared.forget()
    return shared


@pytest.fixture
def context():
    with own_domain() as made:
        yield made


def columns(message):
    """Times and rows (N, 4, n) of a message for a controller."""
    rows = [[p.positions, p.velocities, p.accelerations, p.effort] for p in message.points]
    stamps = [point.time_from_start for point in message.points]
    return np.array([t.sec + 1e-9 * t.nanosec for t in stamps]), np.array(rows)


def content(motion, kind, friction):
    """Efforts of a content, from power series."""
    terms = taylor_terms(robots.TWO_LINK, NAMES, GRAVITY, motion)
    effort = terms[0] + (terms[1] if kind == 'full' else 0.0)
    orders = motion.shape[-2] - 2
    return effort + friction * FRICTION * motion[..., 1 : 1 + orders, :]


@pytest.mark.parametrize(
    ('kind', 'friction'),
    [
        ('full', True),
        ('without_gravity', False),
        pytest.param('full', False, marks=pytest.mark.slow),
        pytest.param('without_gravity', True, marks=pytest.mark.slow),
    ],
)
def test_efforts_between_the_points_are_exact_up_to_the_tolerance(station, kind, friction):
    tolerance = 0.02
    assert station.set(command__effort=kind, command__friction=friction).successful
    whole = station.move()
    message = station.received('controller_trajectory')[0]
    assert tuple(message.joint_names) == NAMES
    times, rows = columns(message)
    # The stamp comes before the first point: one that has passed is "now" for the controller.
    assert times[0] == LEAD_IN
    assert (
        nanoseconds(whole.header.stamp) - nanoseconds(message.header.stamp) == 1e9 * LEAD_IN
    )
    times -= LEAD_IN
    assert times[-1] == pytest.approx(TIMES[-1], abs=1e-12)
    expected = content(rows[:, :3], kind, friction)[:, 0]
    np.testing.assert_allclose(rows[:, 3], expected, rtol=0.0, atol=1e-11)
    # As the controller moves: of degree 5, with efforts that are interpolated linearly.
    executed = jtc_motion(times, *(rows[:, k] for k in range(3)))
    looks = np.linspace(0.0, times[-1], 2001)
    exact = content(executed(looks, 2), kind, friction)[:, 0]
    sent = np.stack([np.interp(looks, times, rows[:, 3, j]) for j in range(2)], axis=1)
    assert np.abs(sent - exact).max() <= tolerance
    assert (len(times) > 2) and any('holds with' in text for text in whole.remarks) == (
        kind == 'full'
    )


def test_tolerance_that_needs_too_many_points_is_reported_with_one_that_would_do(station):
    assert station.set(command__effort_tolerance=1e-6, max_trajectory_points=50).successful
    (remark,) = [
        text for text in station.move().remarks if 'no trajectory for a controller' in text
    ]
    enough = float(remark.split('; ')[-1].split(' would')[0])
    assert not station.messages['hodyn_node/controller_trajectory']
    assert station.set(command__effort_tolerance=enough).successful
    station.move()
    assert len(station.received('controller_trajectory')[0].points) <= 50


def test_motion_whose_efforts_jump_is_not_for_a_controller(station):
    assert station.set(interpolation='jtc').successful
    assert any('accelerations' in text for text in station.move().remarks)
    assert not station.messages['hodyn_node/controller_trajectory']


def test_stop_reaches_the_controller_too(station):
    station.move(times=(0.0, 40.0, 90.0))
    station.received('controller_trajectory')
    station.publishers['joint_trajectory'].publish(JointTrajectory())
    times, rows = columns(station.received('controller_trajectory', 2)[1])
    assert times[-1] == pytest.approx(0.5 + LEAD_IN)
    np.testing.assert_allclose(rows[-1, 1:3], 0.0, atol=1e-12)


@pytest.mark.parametrize('kind', ['full', 'without_gravity'])
def test_commands_have_the_joints_and_interfaces_asked_for(station, kind):
    interfaces = ['effort', 'position', 'effort_dot', 'velocity']
    assert station.set(
        command__joints=['elbow', 'shoulder'],
        command__interfaces=interfaces,
        command__effort=kind,
    ).successful
    station.move()
    name, end = 'hodyn_node/commands', np.array(POSITIONS[-1])
    station.wait(
        lambda: (
            (messages := station.messages[name])
            and np.array_equal(np.reshape(messages[-1].data, (2, 4))[::-1, 1], end)
        ),
        'the end of the motion',
    )
    layout = station.messages[name][0].layout.dim
    assert [(item.label, item.size, item.stride) for item in layout] == [
        ('joints', 2, 8),
        ('interfaces', 4, 4),
    ]
    still = np.zeros((3, 2))
    still[0] = end
    commands = np.reshape(station.messages[name][-1].data, (2, 4))[::-1]
    expected = content(still, kind, True)[0]
    np.testing.assert_allclose(commands[:, 0], expected, rtol=0.0, atol=1e-9)
    assert np.abs(
        np.diff([np.reshape(m.data, (2, 4))[0, 1] for m in station.messages[name]])
    ).max()


def rates_of(station, efforts):
    """Derivatives of efforts by the efforts, once all of these have come."""

    def found():
        messages = list(station.messages['hodyn_node/joint_effort'])
        known = {tuple(message.effort): message.effort_dot for message in messages}
        return known if set(efforts) <= set(known) else None

    return station.wait(found, 'the same efforts')


def test_commands_agree_with_the_efforts_of_the_same_instant(station):
    assert station.set(command__interfaces=['effort', 'effort_dot']).successful
    station.move(times=LONG)
    station.wait(
        lambda: (
            len(station.messages['hodyn_node/commands']) >= 50
            and len(station.messages['hodyn_node/joint_effort']) >= 50
        ),
        'samples',
    )
    rows = [
        np.reshape(m.data, (2, 2)) for m in station.messages['hodyn_node/commands'][:50]
    ]
    known = rates_of(station, [tuple(row[:, 0]) for row in rows])
    for row in rows:
        np.testing.assert_array_equal(known[tuple(row[:, 0])], row[:, 1])


def test_pid_controller_gets_efforts_with_their_rates(station):
    messages = pytest.importorskip(
        'control_msgs.msg', reason='control_msgs is not installed'
    )
    assert station.set(command__joints=['elbow', 'shoulder']).successful
    name = 'hodyn_node/multi_dof_command'
    station.listen(messages.MultiDOFCommand, name)
    station.move(times=LONG)
    station.wait(lambda: len(station.messages[name]) >= 20, 'commands')
    found = station.messages[name][:20]
    known = rates_of(station, [tuple(message.values[::-1]) for message in found])
    for message in found:
        assert message.dof_names == ['elbow', 'shoulder']
        np.testing.assert_array_equal(
            known[tuple(message.values[::-1])][::-1], message.values_dot
        )


def test_joints_that_the_robot_does_not_have_are_reported(station, capfd):
    # The elbow has another name; command.joints has not.
    station.describe_and_wait(robots.TWO_LINK.replace('"elbow"', '"wrist"'))
    station.log(capfd, lambda text: "command.joints has 'elbow'" in text)
    message = joint_trajectory(POSITIONS, LONG, ('shoulder', 'wrist'))
    station.publishers['joint_trajectory'].publish(message)
    station.received('joint_effort', 3)
    assert not station.messages['hodyn_node/commands']


def test_limits_are_those_of_the_whole_effort(station):
    assert station.set(command__effort='without_gravity').successful
    weak = robots.TWO_LINK.replace('effort="50"', 'effort="3"')
    station.describe_and_wait(weak)
    whole = station.move()
    motion = samples(whole, FIELDS[:3])
    full = (
        taylor_rnea(robots.TWO_LINK, NAMES, GRAVITY, motion)[:, 0] + FRICTION * motion[:, 1]
    )
    exceeded = {
        item.joint_name for item in whole.limit_violations if item.quantity == 'effort'
    }
    assert exceeded == {
        name for j, name in enumerate(NAMES) if np.abs(full[:, j]).max() > 3.0
    }
    assert exceeded


def test_node_does_not_hear_its_own_trajectories(context, capfd):
    topic = '/joint_trajectory_controller/joint_trajectory'
    remap = ['-r', f'joint_trajectory:={topic}', '-r', f'~/controller_trajectory:={topic}']
    with node_maker(context) as make:
        make(*remap)
        deadline, text = monotonic() + TIMEOUT, ''
        while 'where the node gets its own' not in text and monotonic() < deadline:
            text += capfd.readouterr().err
        assert 'where the node gets its own' in text
