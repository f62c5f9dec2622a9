"""Inverse kinematics of links that closed loops move."""

from dataclasses import replace

import numpy as np
import pytest
from support import mechanisms
from support.mechanisms import PIN, START, some_closed_motion, some_motion
from support.records import changed

from hodyn_ros import (
    forward_kinematics,
    inverse_kinematics,
    jacobian,
)
from hodyn_ros.errors import InverseKinematicsError, MotionError
from hodyn_ros.kinematics import InverseKinematicsOptions, JointTask

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

OF_ROD = {'link': 'right_tip', 'expressed_in': 'hybrid', 'task': ('x', 'rz')}


@pytest.fixture(scope='module')
def five_bar():
    return mechanisms.five_bar()


@pytest.mark.parametrize('seed', [4, 0, 2, 7, 8])
def test_links_of_random_mechanisms_are_brought_back(seed):
    model, motion = some_closed_motion(seed)
    for link in reversed(model.links):
        J = jacobian(model, motion[:1], link, 'hybrid')[0]
        moving = np.flatnonzero(np.abs(J).max(axis=0) > 1e-9)
        if len(moving) >= 2:
            break
    given = forward_kinematics(model, motion, link, 'hybrid')
    rest = [JointTask(model.joint_names[j], motion[:, j]) for j in moving[3:]]
    found = inverse_kinematics(
        model,
        given,
        link,
        'hybrid',
        task=('x', 'y', 'z')[: len(moving)],
        redundancy=rest,
        guess=motion[0] + 1e-4,
    )
    error = np.abs(found.motion - motion)[:, moving].max(axis=1)
    assert (error < [1e-12, 1e-11, 1e-10, 1e-9, 1e-7]).all()


def test_limits_and_what_loops_reach_are_kept(five_bar):
    motion = some_motion(five_bar, ())
    link = forward_kinematics(five_bar, motion[:1], 'right_tip')
    tree = mechanisms.planar()
    lower = tree.limits.lower.copy()
    lower[0] = motion[0, 0] + 0.02
    limited = replace(tree, limits=changed(tree.limits, lower=lower)).with_loops(
        [PIN], independent=five_bar.joint_names, start=START
    )
    elsewhere = inverse_kinematics(limited, link, **OF_ROD).motion
    assert elsewhere[0, 0] >= lower[0]
    found = forward_kinematics(limited, elsewhere, 'right_tip').pose
    np.testing.assert_allclose(found[[0, 0, 1], [0, 3, 0]], link.pose[[0, 0, 1], [0, 3, 0]])
    options = InverseKinematicsOptions(restarts=0)
    with pytest.raises(InverseKinematicsError, match='left at the limits'):
        inverse_kinematics(limited, link, **OF_ROD, options=options)
    options = InverseKinematicsOptions(limits=False)
    found = inverse_kinematics(limited, link, **OF_ROD, options=options).motion
    np.testing.assert_allclose(found, motion[:1], atol=1e-10)
    far = link.pose + np.array([[0, 0, 0, 3.0]] + [[0] * 4] * 3)
    with pytest.raises(InverseKinematicsError, match='out of reach'):
        inverse_kinematics(five_bar, (far, link.twist), **OF_ROD)
    with pytest.raises(MotionError, match='cannot be closed'):
        inverse_kinematics(five_bar, link, **OF_ROD, guess=[np.pi, 0.0])
