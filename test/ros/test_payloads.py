"""Payloads and friction that change while the node runs, against series that share no code."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from geometry_msgs.msg import Inertia, Vector3
from hodyn_msgs.srv import SetFriction, SetPayload
from numpy.polynomial import Polynomial
from rclpy.exceptions import ParameterNotDeclaredException
from support import robots
from support.messages import (
    GRAVITY,
    MOTION,
    NAMES,
    joint_motion,
    nanoseconds,
    rows,
)
from support.oracles import taylor_rnea
from support.ros_harness import Harness, dict_of

SECOND = 10**9
# A weight on the tool, its description beside the links of the arm.
WEIGHT = {
    'mass': 2.0,
    'com': (0.05, -0.02, 0.1),
    'inertia': (0.01, 0.001, 0.0, 0.02, 0.0, 0.015),
}


def loaded(urdf, mass, com, inertia):
    keys = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    values = ' '.join(f'{key}="{value}"' for key, value in zip(keys, inertia))
    x, y, z = com
    weight = (
        f'<link name="weight"><inertial><origin xyz="{x} {y} {z}"/><mass value="{mass}"/>'
        f'<inertia {values}/></inertial></link><joint name="grip" type="fixed">'
        '<parent link="tool"/><child link="weight"/></joint></robot>'
    )
    return urdf.replace('</robot>', weight)


EMPTY = taylor_rnea(robots.TWO_LINK, NAMES, GRAVITY, MOTION)
FULL = taylor_rnea(loaded(robots.TWO_LINK, **WEIGHT), NAMES, GRAVITY, MOTION)


def request(
    link='tool', mass=2.0, com=(0.05, -0.02, 0.1), inertia=WEIGHT['inertia'], **more
):
    keys = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    body = Inertia(m=mass, com=Vector3(**dict(zip('xyz', com))), **dict(zip(keys, inertia)))
    return SetPayload.Request(link=link, inertia=body, **more)


class Arm(Harness):
    """A node with the two-link arm and a client that changes what it carries."""

    def __init__(self, **parameters):
        super().__init__({'input_timeout': 0.0, **parameters})
        self.describe_and_wait(robots.TWO_LINK)

    def carry(self, **fields):
        return self.ask(SetPayload, 'hodyn_node/set_payload', request(**fields))

    def efforts(self, time):
        """Efforts at a time [ns], of the motion that all tests have there."""
        message = joint_motion(stamp=time)
        count = len(self.messages['hodyn_node/joint_effort'])
        self.publishers['joint_motion'].publish(message)
        answer = self.received('joint_effort', count + 1)[-1]
        assert answer.header.stamp == message.header.stamp
        return rows(answer)


@pytest.fixture
def arm():
    """An arm of one test, for which transitions may wait in the end."""
    made = Arm()
    yield made
    made.close()


@pytest.fixture(scope='module')
def shared_arm():
    made = Arm()
    yield made
    made.close()


@pytest.fixture
def empty(shared_arm):
    """An arm that carries nothing, also at the end of the test."""
    shared_arm.describe_and_wait(robots.OTHER_JOINTS)  # which ends what it carries
    shared_arm.describe_and_wait(robots.TWO_LINK)
    shared_arm.forget()
    return shared_arm


def series(x, duration):
    """Share of what comes, as a polynomial in the time from x * duration on."""
    shift = Polynomial([x, 1.0 / duration])
    return 10.0 * shift**3 - 15.0 * shift**4 + 6.0 * shift**5


def along(x, duration, before, after):
    """Efforts and two derivatives at a part of a transition, from power series."""
    factors = np.array([1.0, 1.0, 2.0])[:, None]
    result = []
    for start, change in zip((before / factors).T, ((after - before) / factors).T):
        product = Polynomial(start) + series(x, duration) * Polynomial(change)
        result.append([product.coef[k] * factorial(k) for k in range(3)])
    return np.array(result).T


def close(given, expected):
    scale = np.abs(expected).max(axis=1, keepdims=True)
    return np.all(np.abs(given - expected) <= 1e-12 * scale)


def test_efforts_along_a_transition_have_its_derivatives(arm):
    answer = arm.carry(transition_time=0.5)
    assert answer.success, answer.message
    assert list(answer.warnings) == []
    start = nanoseconds(answer.start)
    assert close(arm.efforts(start - 1), EMPTY)
    for x in (0.0, 0.02, 0.25, 0.5, 0.7, 0.998):
        time = start + round(x * 0.5 * SECOND)
        expected = along(x, 0.5, EMPTY, FULL)
        assert close(arm.efforts(time), expected), x
    for time in (start + SECOND // 2, start + 5 * SECOND):
        assert close(arm.efforts(time), FULL)
    arm.status('model', lambda s: dict_of(s).get('payload of tool', '').startswith('2 kg'))


def test_transitions_follow_each_other_and_payloads_end(arm):
    first = nanoseconds(arm.carry(transition_time=100.0).start)
    second = nanoseconds(
        arm.carry(mass=0.0, com=(0.0,) * 3, inertia=(0.0,) * 6, transition_time=1.0).start
    )
    assert second == first + 100 * SECOND
    assert close(arm.efforts(second), FULL)
    assert close(arm.efforts(second + SECOND // 4), along(0.25, 1.0, FULL, EMPTY))
    assert close(arm.efforts(second + SECOND), EMPTY)


def rub(arm, joint='elbow', transition_time=0.0, allow_step=True, **law):
    asked = SetFriction.Request(joint=joint, names=[*law], values=[*law.values()])
    asked.transition_time, asked.allow_step = transition_time, allow_step
    return arm.ask(SetFriction, 'hodyn_node/set_friction', asked)


RUBBING = EMPTY + 0.5 * np.array([[0.0, 1.0]]) * MOTION[1:4]


def test_friction_changes_along_a_transition(arm):
    answer = rub(arm, viscous=0.5, transition_time=0.5, allow_step=False)
    assert answer.success, answer.message
    start = nanoseconds(answer.start)
    assert close(arm.efforts(start - 1), EMPTY)
    middle = start + SECOND // 4
    assert close(arm.efforts(middle), along(0.5, 0.5, EMPTY, RUBBING))
    assert arm.carry(transition_time=0.5).success  # both changes keep their own transition
    assert close(arm.efforts(middle), along(0.5, 0.5, EMPTY, RUBBING))
    assert close(arm.efforts(start + 2 * SECOND), FULL + RUBBING - EMPTY)


def test_friction_stays_with_other_robots_until_it_ends(empty):
    arm = empty
    time = nanoseconds(rub(arm, viscous=0.5).start) + 60 * SECOND
    arm.status('model', lambda s: '0.5' in dict_of(s).get('friction of elbow', ''))
    assert arm.set(publish_rate=90.0).successful
    arm.describe_and_wait(robots.HEAVIER_TWO_LINK)
    heavy = taylor_rnea(robots.HEAVIER_TWO_LINK, NAMES, GRAVITY, MOTION)
    assert close(arm.efforts(time), heavy + RUBBING - EMPTY)
    assert rub(arm).success
    assert close(arm.efforts(time), heavy)
    for given, why in (
        ({'viscous': -1.0}, 'friction.elbow: Viscous'),
        ({'phi1': 1.0}, 'phi2'),
        ({'viscos': 1.0}, 'viscos'),
        ({'viscous': 1.0, 'joint': 'wrist'}, "'wrist'"),
        ({'viscous': 1.0, 'allow_step': False}, 'transition_time is 0'),
        ({'viscous': 1.0, 'transition_time': -1.0}, 'transition_time'),
    ):
        answer = rub(arm, **given)
        assert not answer.success
        assert why in answer.message
    asked = SetFriction.Request(joint='elbow', names=['viscous'], allow_step=True)
    assert 'with 0 values' in arm.ask(SetFriction, 'hodyn_node/set_friction', asked).message
    assert close(arm.efforts(time), heavy)
    with pytest.raises(
        ParameterNotDeclaredException, match='friction.<joint>.<key> is read'
    ):
        arm.set(friction__elbow__viscous=0.5)
