"""Control laws on robots that are not their model: tracking, contact, faults and stops.

The robots are simulated by Pinocchio, or by equations of motion written in `support.soft_arm`.
"""

import numpy as np
import pytest
from scipy.linalg import expm
from support.control_cases import (
    ALL,
    HOME,
    MOTOR_INERTIA,
    PERIOD,
    STIFFNESS,
    TORQUE_LIMITS,
    Condition,
    follow,
)
from support.control_simulation import panda
from support.elastic_cases import BANDWIDTH, mixed_three_link, rms, sampled_error, sway
from support.elastic_cases import panda as panda_case
from support.followed import AT_REST, Followed, growth, law, resting
from support.interaction_cases import hand, ramped, random_pushes, tip, touch
from support.soft_arm import A, K, followed

from hodyn_ros.control import (
    CartesianImpedance,
    FeedForwardController,
    FlatnessController,
    GravityCompensation,
    Guards,
    JointImpedance,
    TorqueControl,
    motor_gains,
    probing_motion,
)
from hodyn_ros.errors import ControlError, MotionError
from hodyn_ros.trajectory import panda_sinusoids

HOME = np.array(HOME)
SOFTER = np.array([200.0] * 4 + [100.0] * 3)  # than the springs [N m/rad]
TIP_STIFFNESS = np.array([20.0, 30.0, 25.0, 400.0, 700.0, 500.0])  # rotations first


@pytest.fixture(scope='module')
def model():
    return panda()


class MotorControl:
    """Proportional and derivative control of the motors with the weight (Tomei 1991)."""

    def __init__(self):
        self.plant = Condition().plant()

    def command(self, desired, q, qd, theta, thetad):
        weight = self.plant.weight(desired[0])
        wanted = desired[0] + weight / STIFFNESS
        pull = 400.0 * (wanted - theta) + 40.0 * (desired[1] - thetad)
        return np.clip(weight + MOTOR_INERTIA * pull, -TORQUE_LIMITS, TORQUE_LIMITS)


# --- Tracking -----------------------------------------------------------------------------------


@pytest.mark.parametrize(('given', 'largest'), [({}, 0.01), ({**ALL, 'delay': 1}, 7.0)])
def test_tracking_law_follows_a_robot_that_is_not_its_model(model, given, largest):
    """ALL: springs 5 % softer, 1 kg of payload, Coulomb friction, encoders; errors in mrad."""
    condition = Condition(**given)
    run, plain = (follow(x, condition, substeps=1) for x in (law(model), MotorControl()))
    assert run.peak < largest
    assert run.rms < 0.05 * plain.rms
    assert run.at_end < 0.1
    assert run.rate_at_rest < 200.0
    assert run.saturated == 0.0


def test_error_under_exact_linearisation_follows_the_placed_poles():
    case, w = mixed_three_link(), np.array([12.0, 9.0, 7.0])
    poles = [np.full(order, -own) for order, own in zip((4, 2, 4), w)]
    with pytest.warns(UserWarning, match='stiffness'):
        controller = FlatnessController(case.model, case.actuators, w)
    reference = sway(3)
    motion = reference(0.0)[:4] - np.array([[0.05], [-0.2], [0.9], [6.0]])
    k0, k1 = np.poly(poles[1])[:0:-1]
    e2d = 0.2 * k1 - 0.05 * k0  # a rigid joint has the acceleration that the law gives it
    motion[2:, 1] = reference(0.0)[2:4, 1] - [e2d, -k1 * e2d + 0.2 * k0]
    error = reference(0.0)[:4] - motion
    times = np.linspace(0.0, 0.3, 4)
    states = case.plant.run_continuously(
        case.state(motion), lambda t, x: controller.command(reference(t), *x), times
    )
    found = np.array([reference(t)[0] for t in times]) - states[:, 0]
    for j, own in enumerate(poles):
        companion = np.diag(np.ones(len(own) - 1), 1)
        companion[-1] = -np.poly(own)[:0:-1]
        expected = [(expm(companion * t) @ error[: len(companion), j])[0] for t in times]
        np.testing.assert_allclose(found[:, j], expected, atol=1e-8)


def test_every_derivative_of_the_torque_lowers_the_error_of_feed_forward():
    case, motion = panda_case(STIFFNESS), panda_sinusoids()
    gains = motor_gains(case.model, case.actuators, BANDWIDTH, motion.centre)
    errors = []
    for order in range(3):
        controller = FeedForwardController(
            case.model, case.actuators, gains, order, lead=0.5 * PERIOD
        )
        errors.append(rms(sampled_error(case, controller, motion, 1.5, 150)))
    assert errors[1] < 0.1 * errors[0]
    assert errors[2] < 0.05 * errors[1]


@pytest.mark.parametrize(('mass', 'largest'), [(1.0, 1e-3), (0.8, 0.03)])
def test_motion_and_stiffness_of_variable_joints_are_followed(mass, largest):
    run = followed(lambda time: np.array([8.0, 0.0, 0.0]), mass)
    assert not run.law.reason
    assert run.error < largest
    q, theta = run.state[:2], run.state[4:8].reshape(2, 2)
    stiffness = (A * K * np.cosh(A * (theta - q[:, None]))).sum(axis=1)
    np.testing.assert_allclose(stiffness, 8.0, rtol=2e-3 if mass == 1.0 else 0.1)


# --- Contact ------------------------------------------------------------------------------------


def held(controller, desired=AT_REST):
    return lambda t, measured: controller.command(desired, *measured)


def test_joints_are_as_stiff_as_demanded_though_motors_stick(model):
    plant, force = Condition(coulomb=1.0).plant(), [0.0, 10.0, 5.0, 1.0, 0.0, 0.5]
    controller = law(model, JointImpedance, stiffness=SOFTER)
    run = touch(plant, held(controller), ramped(force), 1.5, substeps=1)
    pushed = tip(plant, run.states[-1, 0])[1].T @ force
    moved = run.states[-1, 0] - HOME
    assert np.abs(moved[:6]).min() > 1e-3
    np.testing.assert_allclose(SOFTER * moved, pushed, atol=0.02 * np.abs(pushed).max())


def test_tip_is_as_stiff_as_demanded_in_its_own_axes(model):
    plant, force = Condition().plant(), np.array([3.0, 10.0, 5.0])
    pose, _ = tip(plant, HOME)
    controller = law(model, CartesianImpedance, stiffness=TIP_STIFFNESS, link='panda_link8')
    controller.aim(pose.homogeneous)
    run = touch(plant, held(controller), ramped([*force, 0.0, 0.0, 0.0]), 1.4, substeps=1)
    moved = pose.rotation.T @ (run.position[-1] - pose.translation)
    given = pose.rotation.T @ force
    np.testing.assert_allclose(TIP_STIFFNESS[3:] * moved, given, atol=0.5)


@pytest.mark.parametrize(
    ('kind', 'options'),
    [
        (JointImpedance, {'stiffness': SOFTER}),
        (CartesianImpedance, {'stiffness': TIP_STIFFNESS, 'link': 'panda_link8'}),
        (GravityCompensation, {'damping': 1.0}),
    ],
)
def test_pushes_get_no_more_energy_out_than_they_put_in(model, kind, options):
    controller = law(model, kind, **options)
    run = touch(Condition().plant(), held(controller), random_pushes(1, 0.5), 0.8)
    assert run.energy.max() > 0.3
    assert run.energy.min() > -1e-4


def test_robot_is_led_by_hand_with_little_force(model):
    plant = Condition(coulomb=1.0).plant()
    start = tip(plant, HOME)[0].translation
    controller = law(model, GravityCompensation, damping=0.5, feeds_torque_back=True)
    run = touch(plant, held(controller), hand(start, [0.0, 0.25, 0.0]), 0.8)
    assert run.position[-1, 1] - start[1] > 0.13
    assert np.abs(run.wrench[500:, 1]).mean() < 2.0


@pytest.mark.parametrize(('coulomb', 'largest'), [(0.0, 0.4), (1.0, 0.8)])
def test_wanted_joint_torques_are_those_of_the_springs(model, coulomb, largest):
    """A robot whose links hardly move: they are a thousand times heavier."""
    plant = Condition(inertia=999.0, coulomb=coulomb).plant()
    plant.model.gravity.linear = np.zeros(3)
    options = {'guards': None, 'feeds_torque_back': coulomb > 0.0}
    controller, w = law(model, TorqueControl, **options), 4.0 * np.pi

    def wanted(t):
        s, c = np.sin(w * t), np.cos(w * t)
        return np.full(7, 5.0) * [[s], [w * c], [-w * w * s]]

    run = touch(
        plant,
        lambda t, measured: controller.command(wanted(t + controller.lead), *measured),
        ramped(np.zeros(6)),
        1.0,
    )
    found = STIFFNESS * (run.states[:, 2] - run.states[:, 0])
    error = found - [wanted(t)[0] for t in run.times]
    assert np.abs(error[300:]).max() < largest


def test_laws_that_share_an_observer_are_switched_without_a_step(model):
    first = law(model)
    shared = {'observer': first.observer}
    laws = [
        first,
        law(model, JointImpedance, stiffness=SOFTER, **shared),
        law(model, GravityCompensation, damping=2.0, **shared),
        first,
    ]
    far = AT_REST.copy()
    far[0] += 0.1  # where the impedance would like to be
    goals = AT_REST, far, far, AT_REST

    def command(t, measured):
        place, k = divmod(round(t / PERIOD), 200)
        if k == 0 and place:
            laws[place].begin()
        return laws[place].command(goals[place], *measured)

    plant = Condition(payload=1.0).plant()
    run = touch(plant, command, ramped([5.0, 0, 0, 0, 0, 0]), 0.8)
    steps = np.abs(np.diff(run.torque, axis=0)).max(axis=1)
    assert steps[[199, 399, 599]].max() < 0.5
    assert steps.max() < 4.0


# --- Faults -------------------------------------------------------------------------------------


def frozen_encoder(robot):
    if robot.k == 600:
        robot.frozen = robot.theta[3]
    if robot.k >= 600:
        robot.theta[3] = robot.frozen


def slipped_encoder(robot):
    robot.q[4] += 0.1 * (robot.k >= 600)


def lost_encoder(robot):
    if robot.k >= 600:
        robot.theta[2] = np.nan


def closed_brake(robot):
    robot.locks = 600 <= robot.k < 900


def weak_drives(robot):
    robot.plant.limits = 1e-9 if 600 <= robot.k < 750 else TORQUE_LIMITS


def gap(robot):
    if 600 <= robot.k < 680:
        robot.elapsed = None


def same_measurements(robot):
    if robot.k == 600:
        robot.kept = robot.q, robot.theta
    if robot.k >= 600:
        robot.q, robot.theta = (x.copy() for x in robot.kept)


def obstacle(robot):
    robot.plant.force[:] = 0.0, -150.0 * (600 <= robot.k < 700), 0.0


FAULTS = [
    (frozen_encoder, "'panda_joint4' stands still", 1.6),
    (
        lost_encoder,
        "motor 'panda_joint3' one after the other cannot be true: it is held",
        1.1,
    ),
    (slipped_encoder, "'panda_joint5'", 1.1),
    (closed_brake, 'max_drive_error', 1.2),
    (weak_drives, 'max_drive_error', 1.2),
    (gap, 'max_gap', 1.2),
    (same_measurements, 'are the same', 3.0),
    (obstacle, 'max_external_torque', 1.2),
]


@pytest.mark.parametrize(('fault', 'named', 'speed'), FAULTS)
def test_fault_stops_the_robot_and_is_named(model, fault, named, speed):
    """Speeds are by their limits; a motor without encoder is held by its link, until brakes do."""
    robot = Followed(law(model, guards=Guards(max_external_torque=30.0)))
    robot.run(0.6, fault)
    assert not robot.law.reason
    robot.run(0.4, fault)
    assert named in robot.law.reason
    assert robot.reasons[-1] == robot.law.reason
    assert robot.law.state == 'stopped'
    assert robot.speed < speed
    if speed < 1.6:
        place = robot.run(0.4, fault).state[2]
        assert np.abs(robot.run(0.2, fault).state[2] - place).max() < 0.1
    robot.law.reset()
    assert (robot.law.state, robot.law.reason) == ('following', '')


def test_motor_at_its_limit_for_long_stops_the_robot(model):
    weak = np.where(np.arange(7) == 1, 25.0, TORQUE_LIMITS)
    loose = Guards(max_tracking_error=9.0, max_drive_error=1e3, velocity_margin=9.0)
    robot = Followed(law(model, torque_limits=weak, guards=loose)).run(1.2)
    assert 'saturation_time' in robot.law.reason
    assert np.abs(robot.torque[1]) <= 25.0


def test_lost_samples_and_single_wrong_positions_are_bridged(model):
    random = np.random.default_rng(1)

    def disturb(robot):
        if robot.k and robot.missing < 5 and random.random() < 0.05:
            robot.elapsed = None
        if robot.k in (500, 700, 900):
            robot.q[2] = {500: np.nan, 700: robot.q[2] + 1.0, 900: np.inf}[robot.k]
            robot.theta[4] += 0.3
            robot.elapsed = PERIOD

    robot = Followed(law(model)).run(1.2, disturb)
    assert not robot.law.reason
    assert robot.law.gated >= 3
    assert robot.rms < 0.05


def test_released_robot_finds_back_without_a_step(model):
    robot = Followed(law(model)).run(0.6)
    robot.law.stop('Asked for.')
    robot.rates.clear()
    robot.run(0.02)
    assert robot.rates[0] < 520.0
    with pytest.raises(ControlError, match='still moves'):
        robot.law.release()
    robot.run(0.9)
    robot.law.release()
    robot.rates.clear()
    robot.run(1.6)
    assert robot.rates[0] < 1.0
    assert robot.errors[-1] < 1e-3
    assert robot.speed < 1.2
    assert robot.law.reason == robot.reasons[-1] == ''


@pytest.mark.parametrize('reaction', ['hold', 'float'])
def test_stopped_robot_is_held_or_gives_way(model, reaction):
    guards = Guards(max_external_torque=15.0, reactions={'max_external_torque': reaction})
    robot = Followed(law(model, guards=guards), resting).run(0.1)
    robot.plant.force[:] = 0.0, 50.0, 0.0
    robot.run(0.2)
    assert 'external torque' in robot.law.reason
    place = robot.state[0].copy()
    robot.run(0.8)
    moved = np.abs(robot.state[0] - place).max()
    assert moved > 0.2 if reaction == 'float' else moved < 0.05
    assert robot.speed < 1.0


def test_law_that_begins_far_away_approaches_within_the_limits(model):
    far = AT_REST.copy()
    far[0] += 0.8
    robot = Followed(law(model), resting)
    robot.motion = lambda times: np.zeros((len(times), 5, 7)) + far
    robot.run(3.0)
    assert not robot.law.reason
    assert robot.errors[-1] < 2e-3
    assert robot.speed < 0.6
    assert max(robot.rates) < 2000.0


# --- What a law says ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('change', 'reason'),
    [
        (lambda q, theta: (np.degrees(q), np.degrees(theta)), 'degrees'),
        (lambda q, theta: (q, 100.0 * theta), 'contradict'),
        (lambda q, theta: (q, theta + np.eye(7)[3] * 0.5), 'contradict'),
    ],
)
def test_first_measurement_that_cannot_be_true_is_refused(model, change, reason):
    controller = law(model)
    theta = controller.resting(HOME)
    with pytest.raises(ControlError, match=reason):
        q, wrong = change(HOME, theta)
        controller.evaluate(AT_REST, q, None, wrong, None)
    torque = controller.evaluate(AT_REST, HOME, None, theta, None).torque
    np.testing.assert_allclose(torque, Condition().plant().weight(HOME), atol=1e-6)
    with pytest.raises(MotionError, match='nan'):
        controller.evaluate(AT_REST * np.nan, HOME, None, theta, None)
    again = controller.evaluate(AT_REST, HOME, None, theta, None).torque
    np.testing.assert_allclose(again, torque, atol=1e-9)


def test_loop_bears_the_gain_and_the_delay_of_its_margins_and_no_more_delay(model):
    margins = law(model).margins(HOME)
    S = margins.sensitivity[1]
    assert growth(law(model), gain=S / (S - 1.0)) < 1.0
    assert growth(law(model), gain=S / (S + 1.0)) < 1.0
    samples = int(margins.delay[1] / PERIOD)
    assert growth(law(model), delay=samples) < 1.0
    assert growth(law(model), delay=samples + 1) > 1.0


def test_delay_of_the_loop_is_seen_though_all_else_is_wrong(model):
    """In a small motion, with springs, payload and friction that the law does not know."""
    plant = Condition(stiffness=-0.05, payload=1.0, coulomb=1.0).plant()
    controller, remarks = law(model), set()
    state = plant.at_rest(HOME)
    waiting = [plant.torque] * 2
    for desired in probing_motion(HOME, PERIOD, lead=controller.lead, duration=2.0):
        command = controller.evaluate(desired, state[0], None, state[2], None)
        remarks.add(command.remark)
        waiting.append(command.torque)
        state = plant.hold(state, waiting.pop(0), PERIOD, 1)
    assert controller.delay_seen.delay == pytest.approx(2.0 * PERIOD, abs=0.15e-3)
    assert controller.delay_seen.deviation < 0.1e-3
    assert all('give delay' in remark for remark in remarks if remark)
    assert len(remarks) > 1


def test_stiffness_that_springs_do_not_allow_is_refused_with_the_largest(model):
    with pytest.raises(ControlError, match=r'at most ([0-9.]+) of it') as refused:
        law(model, JointImpedance, stiffness=STIFFNESS)
    share = float(str(refused.value).split('at most ')[1].split()[0])
    assert 0.3 < share < 1.0
    law(model, JointImpedance, stiffness=0.99 * share * STIFFNESS)
