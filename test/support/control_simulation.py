"""The conditions of `control_cases` on the simulation of this package, by MuJoCo."""

import warnings
from functools import cache

import numpy as np
from support.control_cases import (
    JOINTS,
    LINK_STEP,
    MOTOR_INERTIA,
    MOTOR_STEP,
    PANDA,
    PERIOD,
    PUSHED,
    STIFFNESS,
    TORQUE_LIMITS,
    Run,
)

from hodyn_ros import ModelWarning, RobotModel
from hodyn_ros.actuators import Actuators, RigidDrive, SeriesElastic
from hodyn_ros.control import warm_up
from hodyn_ros.model.friction import Coulomb
from hodyn_ros.simulation import ElasticPlant, Imperfections, Sensors, simulate_tracking

TIME_STEP = 2e-4  # s
DIFFERENCES = 1e-9  # s, of a low pass that passes differences as they are
FLANGE = 'panda_link8'


@cache
def panda():
    """Give the robot that controllers know, compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_urdf(PANDA)
    warm_up(model)
    return model


def drives(model, stiffness=STIFFNESS, damping=0.0, friction=None, inertia=1.0, rigid=()):
    """Give every joint a motor, and a spring of a stiffness (7,) where it is not rigid."""
    rows = zip(model.joint_names, stiffness.tolist(), (inertia * MOTOR_INERTIA).tolist())
    made = {name: SeriesElastic(k, b, damping, friction) for name, k, b in rows}
    for j in rigid:
        made[JOINTS[j]] = RigidDrive(float(MOTOR_INERTIA[j]))
    return Actuators(model, made)


def imperfections(condition):
    """What the simulated robot has of a condition."""
    by_joint = dict(zip(panda().joint_names, TORQUE_LIMITS.tolist()))
    return Imperfections(
        stiffness_error=condition.stiffness,
        inertia_error=condition.inertia,
        payload={FLANGE: condition.payload},
        coulomb=condition.coulomb,
        breakaway=condition.breakaway,
        damping=condition.damping,
        backlash=condition.backlash,
        gear_ratio=condition.gear_ratio or 0.0,
        torque_limit=by_joint,
    )


def follow(law, condition, stiffness=STIFFNESS, time_step=TIME_STEP):
    """Let a robot follow the motion of a condition."""
    model = panda()
    if condition.link_coulomb:
        model = model.with_friction(dict.fromkeys(JOINTS, Coulomb(condition.link_coulomb)))
    plant = ElasticPlant(
        model, drives(model, stiffness), time_step, imperfections=imperfections(condition)
    )
    steps = {'resolution': LINK_STEP, 'motor_resolution': MOTOR_STEP}
    sensors = Sensors(velocity_filter=DIFFERENCES, **steps) if condition.encoders else None

    def start(sampled):
        q = condition.motion(np.zeros(1))[0, 0]
        plant.reset(q)
        motors, held = plant.theta + condition.offset, plant.holding_torque(q)
        sampled.reset(q + condition.offset, theta=motors, torque=held)

    def push(plant, time):
        if condition.push and time >= PUSHED:
            plant.push(model.joint_names[-1], (0.0, condition.push, 0.0))

    record = simulate_tracking(
        plant,
        law,
        condition.motion,
        condition.duration,
        PERIOD,
        sensors,
        condition.delay,
        start,
        push,
    )
    return Run(record.times, record.error, record.torque, TORQUE_LIMITS)
