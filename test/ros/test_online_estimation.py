"""Payload and friction identified by the node, from joint states whose efforts Pinocchio gives."""

from __future__ import annotations

import time

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Inertia, Vector3
from hodyn_msgs.msg import IdentifiedParameters
from hodyn_msgs.srv import SetPayload
from sensor_msgs.msg import JointState
from support import robots
from support.messages import stamp_of
from support.ros_harness import Harness, dict_of

pin = pytest.importorskip('pinocchio')

SECOND = 10**9
STEP = SECOND // 100
NAMES = ('first', 'second', 'third')
XML = robots.robot(
    '<link name="base"/>',
    *(robots.link(name, mass) for name, mass in (('a', 3.0), ('b', 2.0), ('c', 1.0))),
    '<link name="tool"/>',
    robots.joint('first', 'base', 'a', axis='1 0 0'),
    robots.joint('second', 'a', 'b', axis='0 1 0'),
    robots.joint('third', 'b', 'c', axis='1 0 0'),
    robots.joint('flange', 'c', 'tool', kind='fixed'),
    name='three',
)
MASS, COM = 2.0, np.array([0.05, -0.03, 0.1])
TOPIC = 'hodyn_node/identified_parameters'


def motion(times):
    """Sines of all joints with two derivatives, shape (N, 3, 3)."""
    amplitude, pulse = np.array([0.9, 0.7, 1.0]), np.array([2.1, 2.9, 3.6])
    phase = np.multiply.outer(times, pulse) + [0.1, 1.0, 2.0]
    rows = np.sin(phase), pulse * np.cos(phase), -(pulse**2) * np.sin(phase)
    return amplitude * np.stack(rows, axis=1)


class Arm(Harness):
    """A node with an arm of three joints that carries something, and a client that moves it."""

    def __init__(self, **parameters):
        options = {'input_timeout': 0.0, 'answer_all': True, **parameters}
        super().__init__(options, description_first=XML)
        self.wait_until_in_use(XML)
        self.listen(IdentifiedParameters, TOPIC)
        self.states = self.advertise(JointState, 'joint_states')
        # Ahead of the clock: on a busy machine they would be too old for a payload to be certain.
        self.begin, self.count, self.sent = time.time_ns() + 600 * SECOND, 0, 0
        self.rng = np.random.default_rng(0)

    def warm_up(self, **options):
        """Move until measurements are used."""
        self.messages[TOPIC].clear()
        while not self.messages[TOPIC]:
            self.move(0.5, **options)

    def move(self, seconds, mass=MASS, friction=0.0, with_efforts=True, names=NAMES):
        """Send measured joint states and wait until all of them have been taken."""
        numbers = self.count + np.arange(round(100 * seconds))
        self.count += len(numbers)
        path = motion(0.01 * numbers)
        reference = pin.buildModelFromXML(XML)
        frame = reference.frames[reference.getFrameId('tool')]
        body = pin.Inertia(mass, COM, np.zeros((3, 3)))
        reference.inertias[frame.parentJoint] += frame.placement.act(body)
        data = reference.createData()
        for number, rows in zip(numbers.tolist(), path):
            tau = pin.rnea(reference, data, *rows) + friction * np.sign(rows[1])
            tau += self.rng.normal(scale=0.1, size=3)
            stamp = self.begin + number * STEP
            message = JointState(
                name=names,
                position=rows[0] + self.rng.normal(scale=1e-5, size=3),
                effort=tau if with_efforts else [],
            )
            message.header.stamp = Time(sec=stamp // SECOND, nanosec=stamp % SECOND)
            self.states.publish(message)
            self.sent += 1
            if not self.sent % 20:
                self.settle()
        self.settle()

    def settle(self):
        total = self.node.diagnostics.input('joint_states').total
        self.wait(
            lambda: total['received'] + total['refused'] >= self.sent, 'joint states taken'
        )

    def carry(self, **fields):
        request = SetPayload.Request(transition_time=0.5, **fields)
        return self.ask(SetPayload, 'hodyn_node/set_payload', request)

    def newest(self):
        """Parameters of the end: what each is, and how large its error may be."""
        end, kept = self.begin + self.count * STEP - SECOND // 2, self.messages[TOPIC]
        self.wait(lambda: kept and stamp_of(kept[-1]) > end, 'parameters of the end')
        message = kept[-1]
        return message, dict(zip(message.names, zip(message.values, message.deviations)))


@pytest.fixture
def arm(request):
    made = Arm(**{f'identification.{key}': value for key, value in request.param.items()})
    yield made
    made.close()


def assert_found(found, truth):
    for name, value in truth.items():
        mean, std = found[name]
        assert abs(mean - value) < 4.0 * std, (name, mean, std)


LOOKING = {'enabled': True, 'payload_link': 'tool'}
TRUTH = {
    'payload.mass': MASS,
    **{f'payload.first_moment_{k}': MASS * x for k, x in zip('xyz', COM)},
}


@pytest.mark.parametrize('arm', [LOOKING], indirect=True)
def test_payload_is_found_told_and_applied_on_request_only(arm):
    refused = arm.carry(use_identified=True)
    assert not refused.success
    assert 'nothing is measured' in refused.message
    arm.warm_up()
    arm.move(8.0)
    message, found = arm.newest()
    assert_found(found, TRUTH)
    assert found['payload.mass'][1] < 0.1
    assert message.header.frame_id == 'tool'
    assert list(message.units) == ['kg', 'kg m', 'kg m', 'kg m']
    assert 300 < message.samples
    assert message.outliers == 0
    status = arm.status('identification', lambda s: s.message == 'a payload is certain')
    told = dict_of(status)
    assert set(told) == {*message.names, 'samples', 'outliers'}
    assert told['payload.mass'].endswith(' kg')
    assert arm.node.robot.payloads == ()

    wrong = arm.carry(use_identified=True, link='c')
    assert not wrong.success
    assert "'tool'" in wrong.message
    inertia = Inertia(m=77.0, com=Vector3(x=9.0), ixx=0.01, iyy=0.02, izz=0.015)
    taken = arm.carry(use_identified=True, inertia=inertia)
    assert taken.success, taken.message
    (payload,) = arm.node.robot.payloads
    assert payload.link == 'tool'
    np.testing.assert_allclose(
        [payload.mass, *payload.com], [MASS, *COM], rtol=0.1, atol=0.02
    )
    np.testing.assert_array_equal(payload.inertia_com, np.diag([0.01, 0.02, 0.015]))

    arm.move(6.0)
    message, found = arm.newest()
    assert_found(found, TRUTH)  # in total, though the model has it
    assert message.samples > 500 and message.outliers == 0  # nothing was forgotten
    again = arm.carry(use_identified=True)
    assert again.success, again.message
    (payload,) = arm.node.robot.payloads
    np.testing.assert_allclose(
        [payload.mass, *payload.com], [MASS, *COM], rtol=0.1, atol=0.02
    )


@pytest.mark.parametrize('arm', [LOOKING], indirect=True)
def test_joint_states_without_efforts_are_answered_and_told(arm):
    def said():
        arm.move(0.5, with_efforts=False)
        statuses = [s for m in list(arm.messages['/diagnostics']) for s in m.status]
        return [s for s in statuses if 'effort has' in s.message]

    def answered():
        arm.move(0.5, with_efforts=False)
        return arm.messages['hodyn_node/joint_effort']

    status = arm.wait(said, 'what is lacking')[0]
    assert status.level == status.WARN
    assert 'effort has 0 values' in status.message
    assert not arm.messages[TOPIC]
    # Samples may have come before the robot had arrived.
    assert arm.wait(answered, 'answer')
    assert arm.node.diagnostics.input('joint_states').total['refused'] == 0


@pytest.mark.parametrize('arm', [{}], indirect=True)
def test_nothing_is_done_unless_it_is_enabled(arm):
    arm.move(2.0)
    assert not arm.messages[TOPIC]
    statuses = arm.node.statuses()
    assert not [item for item in statuses if item.name.endswith('identification')]
    refused = arm.carry(use_identified=True)
    assert not refused.success
    assert 'identification.enabled' in refused.message
    for values, why in (
        ({'identification.enabled': True}, 'nothing to find'),
        ({'identification.enabled': True, 'identification.payload_link': 'hand'}, "'hand'"),
        (
            {'identification.enabled': True, 'identification.friction': ['x']},
            'first, second',
        ),
    ):
        result = arm.set(**values)
        assert not result.successful
        assert why in result.reason
    looking = {'identification.enabled': True, 'identification.payload_link': 'tool'}
    assert arm.set(**looking).successful
    arm.warm_up()
