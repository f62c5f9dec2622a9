"""Recordings with one thing wrong each, and robots of three joints that are measured rightly.

Links are Pinocchio's, the rest is written down in identification_cases; nothing here is of
hodyn_ros.
"""

from dataclasses import dataclass, replace

import numpy as np
import pinocchio
from support import identification_cases as cases
from support.control_cases import JOINTS, MOTOR_INERTIA, STIFFNESS

MASS = 1.2  # kg, at the flange
GROUPS = ('payload', 'viscous', 'coulomb', 'stiffness')
LINK = 'panda_link8'
SENSING = cases.Sensing(period=2e-3, noise=0.1)
MOTION = cases.random_motion(5, duration=16.0)
ROBOT = cases.ElasticRobot(
    cases.panda(None, (MASS, (0.0, 0.0, 0.0))),
    stiffness=0.9 * STIFFNESS,
    friction=cases.Friction(np.full(7, 0.2), np.ones(7), offset=np.zeros(7)),
)


@dataclass(frozen=True)
class Wrong:
    """A recording, or what is known beside it, that is wrong, and the words that name it."""

    words: str
    """Part of what has to be said."""
    scale: tuple = ()
    """(what, joint or slice, factor) of a quantity that is recorded wrongly."""
    swap: str = ''
    """What is recorded of joints 5 and 6 in the place of each other."""
    inertia: tuple = ()
    """(joint or slice, factor) of motor inertias as they are given."""
    hysteresis: float = 0.0
    """Of all springs [N m]."""
    delay: float = 0.0
    """Of torques [s]."""
    groups: tuple = GROUPS
    """What is asked for."""


EVERY = slice(None)
WRONG = {
    'torque constant of joint 2, 1 %': Wrong(
        'torque constant of panda_joint2 (x 1.01)', ('motor_torque', 1, 1.01)
    ),
    'all torque constants, 5 %': Wrong(
        'torque constant of all joints (x 1.05)', ('motor_torque', EVERY, 1.05)
    ),
    'inertia of motor 2 given twice': Wrong(
        'armature of panda_joint2 (-0.6', inertia=(1, 2.0)
    ),
    'inertias of all motors given twice': Wrong(
        'armature of all joints one by one (-0.60', inertia=(EVERY, 2.0)
    ),
    'encoder of joint 4, 0.1 %': Wrong(
        'encoder of panda_joint4 (x 1.001)', ('position', 3, 1.001)
    ),
    'encoder of motor 2, 0.1 %': Wrong(
        'motor encoder of panda_joint2 (x 1.001)', ('motor_position', 1, 1.001)
    ),
    'encoders of all motors, 0.1 %': Wrong(
        'motor encoder of all joints (x 1.001)', ('motor_position', EVERY, 1.001)
    ),
    'encoders of joints 5 and 6 swapped': Wrong(
        'a swap of the encoders of panda_joint5 and panda_joint6', swap='position'
    ),
    'encoders of motors 5 and 6 swapped': Wrong(
        'a swap of the motor encoders of panda_joint5 and panda_joint6',
        swap='motor_position',
    ),
    'hysteresis of 1 N m': Wrong('hysteresis of all joints', hysteresis=1.0),
    'payload that is not asked for': Wrong(
        'a payload of 1.2 kg at panda_link8', groups=GROUPS[1:]
    ),
    'torques 2 ms late': Wrong('efforts that come 2 ms late', delay=2e-3),
}


def record(wrong):
    """What is recorded."""
    robot = replace(ROBOT, hysteresis=wrong.hysteresis)
    found = robot.record(MOTION, replace(SENSING, delay=wrong.delay), seed=0)
    if wrong.scale:
        what, joints, factor = wrong.scale
        found[what][:, joints] *= factor
    if wrong.swap:
        found[wrong.swap][:, [4, 5]] = found[wrong.swap][:, [5, 4]]
    return found


def motor_inertia(wrong):
    """Those of the motors, as they are given."""
    known = MOTOR_INERTIA.copy()
    if wrong.inertia:
        joints, factor = wrong.inertia
        known[joints] *= factor
    return dict(zip(JOINTS, known.tolist()))


# --- Robots of three joints -------------------------------------------------------------------


@dataclass(frozen=True)
class Small:
    """A robot of three joints with a recording of it."""

    urdf: str
    """With masses that are up to a fifth off."""
    record: dict
    parameters: np.ndarray
    """Inertial ones (30,), armature, viscous, Coulomb, offset (3,) each, delay."""


def small(seed, duration=10.0, noise=0.1):
    """A random one that moves by five sines each, at 500 Hz, with encoders of 18 bits."""
    rng = np.random.default_rng(seed)
    links = [_link(rng) for _ in range(3)]
    joints = [_joint(rng, k) for k in range(3)]
    viscous, coulomb = rng.uniform(0.1, 1.0, 3), rng.uniform(0.2, 1.0, 3)
    armature, offset = rng.uniform(0.02, 0.1, 3), rng.normal(scale=0.1, size=3)
    t = np.arange(0.0, duration, 2e-3)
    rates = 2.0 * np.pi * rng.uniform(0.13, 0.7, (5, 3))
    sizes = 0.85 * rng.normal(size=(5, 3)) / rates
    phase = t[:, None, None] * rates + rng.uniform(0.0, 2.0 * np.pi, (5, 3))
    q, qd, q2d = (
        (sizes * rates**r * np.sin(phase + 0.5 * np.pi * r)).sum(axis=1) for r in range(3)
    )
    true = pinocchio.buildModelFromXML(_urdf(links, joints))
    data = true.createData()
    effort = np.array([pinocchio.rnea(true, data, *row) for row in zip(q, qd, q2d)])
    effort += armature * q2d + viscous * qd + coulomb * np.sign(qd) + offset
    effort += noise * np.random.default_rng(1000 + seed).normal(size=effort.shape)
    given = [
        (factor * mass, com, factor * inertia)
        for factor, (mass, com, inertia) in zip(rng.uniform(0.8, 1.2, 3), links)
    ]
    step = 2.0 * np.pi / 2**18
    recorded = {
        'names': tuple(true.names)[1:],
        'time': t,
        'position': cases.rounded(q, step),
        'effort': effort,
    }
    own = cases.inertial_parameters(true)
    parameters = np.concatenate([own, armature, viscous, coulomb, offset, [0.0]])
    return Small(_urdf(given, joints), recorded, parameters)


def _link(rng):
    mass, com, A = (
        rng.uniform(0.3, 4.0),
        rng.normal(scale=0.08, size=3),
        rng.normal(size=(3, 3)),
    )
    spread = mass * (1e-3 * A @ A.T + 4e-3 * np.eye(3))
    return mass, com, np.trace(spread) * np.eye(3) - spread


def _joint(rng, k):
    axis, origin = rng.normal(size=3), rng.normal(scale=0.2, size=3) * (k > 0)
    return axis / np.linalg.norm(axis), origin, rng.uniform(-3.0, 3.0, 3)


def _urdf(links, joints):
    def text(values):
        return ' '.join(f'{value:.12g}' for value in values)

    parts = ['<robot name="small"><link name="link0"/>']
    for k, ((mass, com, tensor), (axis, origin, angles)) in enumerate(
        zip(links, joints), start=1
    ):
        inertia = ' '.join(
            f'i{"xyz"[i]}{"xyz"[j]}="{tensor[i, j]:.12g}"'
            for i in range(3)
            for j in range(i, 3)
        )
        parts.append(
            f'<link name="link{k}"><inertial><origin xyz="{text(com)}"/>'
            f'<mass value="{mass:.12g}"/><inertia {inertia}/></inertial></link>'
            f'<joint name="joint{k}" type="revolute"><parent link="link{k - 1}"/>'
            f'<child link="link{k}"/><origin xyz="{text(origin)}" rpy="{text(angles)}"/>'
            f'<axis xyz="{text(axis)}"/>'
            '<limit lower="-3" upper="3" velocity="10" effort="1000"/></joint>'
        )
    return ''.join(parts) + '</robot>'
