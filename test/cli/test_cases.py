"""Robots and recordings as people bring them: right, or refused with what is wrong and what to do.

They are in `test/cases`, what they give in its `expected.yaml`.
"""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import yaml

from hodyn_ros import ModelWarning, RobotModel, forward_kinematics, inverse_dynamics
from hodyn_ros.cli import run
from hodyn_ros.files import read_results
from hodyn_ros.model import friction_from_config

CASES = Path(__file__).resolve().parents[1] / 'cases'
EXPECTED = yaml.safe_load((CASES / 'expected.yaml').read_text(encoding='utf-8'))

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


@pytest.fixture
def hodyn(tmp_path, capsys):
    """Call of a command in a case: its exit code, what it prints, and the file that it writes."""

    def call(command, case, *arguments, output=True):
        out = tmp_path / 'out.csv'
        given = [
            str(CASES / case / a) if (CASES / case / a).is_file() else a for a in arguments
        ]
        code = run([command, *given, *(['-o', str(out)] if output else [])])
        printed = capsys.readouterr()
        return code, ' '.join((printed.out + printed.err).split()), out

    return call


@pytest.mark.every_case
@pytest.mark.parametrize('case', EXPECTED['efforts'])
def test_efforts_are_those_of_pinocchio_or_mujoco(case, hodyn):
    if case == '15_mjcf_at_the_command_line':
        pytest.importorskip('mujoco', reason='reads MJCF')
    robot = 'robot.xml' if (CASES / case / 'robot.xml').is_file() else 'robot.urdf'
    options = EXPECTED['options'].get(case, [])
    code, text, out = hodyn('compute', case, robot, 'motion.csv', *options)
    assert code == 0, text
    results = read_results(out)
    known = EXPECTED['efforts'][case]
    assert set(results.joint_names) == set(known)
    expected = np.array([known[name] for name in results.joint_names]).T
    for found, values, error in zip(results.effort[0], expected, (1e-11, 1e-8, 1e-5)):
        np.testing.assert_allclose(found, values, rtol=0, atol=error * np.abs(values).max())


def test_negative_moments_are_refused_unless_they_are_asked_for(hodyn):
    code, text, _ = hodyn('compute', '04_negative_inertia', 'robot.urdf', 'motion.csv')
    assert (
        code == 2
        and 'principal moments' in text
        and 'allow_impossible_inertia:=true' in text
    )


def test_what_cannot_be_closed_is_refused_with_the_option_that_leaves_it_open(hodyn):
    code, text, _ = hodyn('compute', '14_gazebo_screw', 'robot.urdf', 'motion.csv')
    assert code == 2 and "'screw'" in text and 'loops:=open' in text


# Limits


def test_motion_under_a_velocity_limit_of_zero_is_refused(hodyn):
    case = '09_velocity_limit_zero'
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        warnings.simplefilter('default', ModelWarning)
        code, text, out = hodyn('retime', case, 'robot.urdf', 'motion.csv')
    assert code == 2 and not out.exists()
    assert "joint 'j0' has velocity" in text and 'its limit is 0' in text
    assert hodyn('check', case, 'robot.urdf', 'motion.csv', output=False)[0] == 1


def test_a_joint_at_rest_keeps_a_velocity_limit_of_zero(hodyn):
    case, durations = '09_velocity_limit_zero', []
    for robot in ('robot.urdf', 'fixed.urdf'):
        code, text, out = hodyn('retime', case, robot, 'still.csv')
        assert code == 0 and 'velocity of j0' not in text
        durations.append(read_results(out).times[-1])
    assert durations[0] == pytest.approx(durations[1], rel=0.01)
    code, text, _ = hodyn('check', case, 'robot.urdf', 'still.csv', output=False)
    assert code == 0 and 'by j0' not in text


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('motion', 'exceeded'),
    [
        ('motion.csv', {'position mid', 'position tip', 'velocity mid', 'velocity tip'}),
        ('inside.csv', {'velocity tip'}),
    ],
)
def test_limits_of_followers_are_checked(motion, exceeded, hodyn):
    case = '11_limits_of_followers'
    code, text, _ = hodyn('check', case, 'robot.urdf', motion, output=False)
    assert code == 1
    assert set(re.findall(r'(?:position|velocity) (?:lead|mid|tip)', text)) == exceeded
    if motion == 'inside.csv':
        assert '0.5625 0.5' in text
        code, text, out = hodyn('retime', case, 'robot.urdf', motion)
        assert code == 0
        lead = np.abs(read_results(out).motion[:, 1, 0]).max()
        assert 2.4 * lead == pytest.approx(0.5, rel=1e-3)


def test_what_a_controller_makes_of_samples_exceeds_what_the_samples_keep(hodyn):
    case = '20_totg_between_samples'
    given = ('panda', 'totg.yaml', '--interpolation', 'jtc', '--config', 'limits.yaml')
    code, text, _ = hodyn('check', case, *given, output=False)
    assert code == 1
    value = float(re.search(r'acceleration panda_joint1 [\d.]+ ([\d.]+) 3.75', text)[1])
    assert value == pytest.approx(5.152, rel=0.02)


# Descriptions


@pytest.mark.every_case
@pytest.mark.parametrize('file', ['mimic.sdf', 'loop.sdf'])
def test_a_parallelogram_is_the_same_by_mimic_and_by_a_loop(file):
    model = RobotModel.from_sdf(CASES / '16_four_bar_mimic_or_loop' / file)
    motion = np.array([0.3, 0.7, -1.2, 2.0, -3.0])[:, None]
    expected = [32.8746159066, 33.8002545, -74.526155]
    np.testing.assert_allclose(inverse_dynamics(model, motion)[:, 0], expected, rtol=1e-7)


def test_motors_behind_springs_are_those_of_pinocchio(hodyn):
    case = '17_series_elastic_leg'
    options = ('robot.urdf', 'motion.csv', '--config', 'sea.yaml')
    code, _, out = hodyn('compute', case, *options)
    assert code == 0
    results = read_results(out)
    place = [0.2740526714, -0.4575210715, -0.9164628199]
    np.testing.assert_allclose(results.motors.position[0, 0], place, rtol=1e-9)
    torque = [0.087772, 1.275531, 0.489558]
    np.testing.assert_allclose(results.motors.torque[0, 0], torque, rtol=1e-5)


def test_moments_in_the_wrong_slots_are_refused_with_the_order(hodyn):
    case = '24_left_and_right_impossible_slot_slip'
    code, text, _ = hodyn('info', case, 'robot.urdf', output=False)
    assert code == 2
    assert "'l1'" in text and 'principal moments' in text and 'ixx ixy ixz' in text


# Recordings


def errors(results):
    """Errors of the efforts at 1, 2 and 3 s over the largest ones of each joint, (2 or 3, 3)."""
    order = [results.joint_names.index(name) for name in ('turn', 'lift', 'roll')]
    since = results.times - (results.times[0] if results.times[0] > 1e6 else 0.0)
    distances = np.abs(since[:, None] - [1.0, 2.0, 3.0])
    known = distances.min(axis=0) < 0.004
    assert known.sum() >= 2
    found = results.effort[distances.argmin(axis=0), 0][:, order]
    return (np.abs(found - EXPECTED['arm']['efforts']) / EXPECTED['arm']['largest'])[known]


def is_refused(code, text, *words):
    """Whether it is refused with an error that has each of these words."""
    return code == 2 and 'error:' in text and all(re.search(word, text) for word in words)


def test_the_jerk_of_an_encoder_is_as_good_as_that_of_the_best_filter(hodyn):
    case = '21_jerk_from_encoder'
    code, _, out = hodyn(
        'compute', case, 'robot.urdf', 'motion.csv', '--derivatives', 'estimate'
    )
    assert code == 0
    results = read_results(out)
    t = results.times
    # q = .5 sin(1.5 t) + .2 sin(4 t + .5); Savitzky and Golay's filter reaches .034 at best.
    true = -0.5 * 1.5**3 * np.cos(1.5 * t) - 0.2 * 4.0**3 * np.cos(4.0 * t + 0.5)
    inner = slice(len(t) // 10, -len(t) // 10)
    error = (results.motion[:, 3, 0] - true)[inner]
    assert np.sqrt(np.mean(error**2)) <= 0.034


def test_continuous_joints_recorded_within_a_turn_are_unwrapped(hodyn):
    case = '30_wrapped_continuous_csv'
    for options, near in (((), 1e-3), (('--derivatives', 'estimate'), 1e-2)):
        code, text, out = hodyn('compute', case, 'robot.urdf', 'motion.csv', *options)
        assert code == 0, text
        assert errors(read_results(out)).max() < near


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('case', 'joints', 'limit'),
    [
        ('32_small_degrees', 'turn|lift|roll', r'1\.[79]'),
        ('33_gripper_percent', 'roll', r'1\.7'),
    ],
)
def test_positions_far_beyond_their_limits_are_told(case, joints, limit, hodyn):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        code, text, _ = hodyn('compute', case, 'robot.urdf', 'motion.csv')
    said = ' '.join([text, *(str(item.message) for item in caught)])
    assert code in (0, 2)
    assert re.search(joints, said) and re.search(limit, said) and 'limit' in said


@pytest.mark.every_case
@pytest.mark.parametrize('case', ['35_jittered_stamps', '36_gap'])
def test_jitter_and_gaps_leave_estimates_usable(case, hodyn):
    code, text, out = hodyn(
        'compute', case, 'robot.urdf', 'motion.csv', '--derivatives', 'estimate'
    )
    assert code == 0, text
    # Stamps that are late by 1.5 ms in the mean shift all by as much.
    assert errors(read_results(out)).max() < 0.02


def test_a_gap_that_a_spline_spans_is_remarked_or_refused(hodyn):
    code, text, _ = hodyn('compute', '36_gap', 'robot.urdf', 'motion.csv')
    assert code in (0, 2)
    assert re.search(r'gap|apart|without samples', text) and re.search(r'0\.6', text)


def test_repeated_samples_are_refused_or_left_out_with_a_note(hodyn):
    code, text, out = hodyn('compute', '37_duplicate_stamp', 'robot.urdf', 'motion.csv')
    if not is_refused(code, text, r'sample \d+', r'\d s'):
        assert code == 0 and re.search('repeat|twice|left out', text)
        assert errors(read_results(out)).max() < 1e-2


def test_a_clock_that_begins_anew_is_refused_with_sample_and_times(hodyn):
    code, text, _ = hodyn('compute', '38_clock_reset', 'robot.urdf', 'motion.csv')
    assert is_refused(code, text, r'[Ss]ample \d+|line \d+', r'\d s')


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('file', 'unit'), [('ns.csv', 'nanoseconds'), ('ms.csv', 'milliseconds')]
)
def test_other_units_of_time_are_refused_by_name(file, unit, hodyn):
    code, text, _ = hodyn('compute', '39_time_in_ns_ms', 'robot.urdf', file)
    assert is_refused(code, text, unit)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('file', 'hint'),
    [
        ('rtde.csv', 'space'),
        ('rec.csv', r"'t'|\bt\b"),
        ('plain.csv', 'head|title'),
        ('pj.csv', '__time'),
        ('ros1.csv', '%time'),
    ],
)
def test_titles_of_loggers_are_read_or_refused_with_a_hint(file, hint, hodyn):
    code, text, out = hodyn('compute', '40_titles_of_loggers', 'robot.urdf', file)
    if not is_refused(code, text, hint):
        assert code == 0, text
        assert errors(read_results(out)).max() < 1e-2


def test_first_samples_without_numbers_are_refused_or_left_out_with_a_note(hodyn):
    code, text, out = hodyn('compute', '41_nan_first', 'robot.urdf', 'motion.csv')
    if not is_refused(code, text, 'turn|lift|roll|positions?', r'sample|line|\d s'):
        assert code == 0 and 'left out' in text
        assert errors(read_results(out)).max() < 1e-2


def test_a_display_trajectory_is_read_as_the_trajectory_in_it(hodyn):
    case = '42_display_trajectory'
    code, text, out = hodyn('compute', case, 'robot.urdf', 'display.yaml')
    if code == 2:
        assert 'joint_trajectory' in text and 'DisplayTrajectory' in text
        return
    found = read_results(out)
    code, _, out = hodyn('compute', case, 'robot.urdf', 'same.yaml')
    assert code == 0
    np.testing.assert_array_equal(found.effort, read_results(out).effort)


@pytest.mark.every_case
@pytest.mark.parametrize('file', ['motion.csv', 'motion.npz'])
def test_a_pointer_of_git_lfs_is_told(file, hodyn):
    code, text, _ = hodyn('compute', '43_lfs_pointer', 'robot.urdf', file)
    assert is_refused(code, text, 'LFS')
    assert 'unsafe' not in text and 'allow_pickle' not in text


# Friction and payloads


def test_friction_of_a_hyperbolic_tangent_and_its_derivatives_are_those_of_the_formula():
    law = {'viscous': 0.522, 'coulomb': 0.572, 'smoothing': 1.0 / 193.814}
    model = RobotModel.from_urdf(CASES / '05_no_inertial_origin' / 'robot.urdf')
    motion = np.zeros((5, 3))
    motion[1:4, 0] = 0.003, 0.4, -2.0
    laws = friction_from_config({'j0': law})
    found = inverse_dynamics(model.with_friction(laws), motion)
    found = (found - inverse_dynamics(model, motion))[:, 0]
    # Central differences of 0.572 tanh(193.814 v) + 0.522 v along the motion.
    np.testing.assert_allclose(found, [0.301129673, 32.3908158, -2775.2073], rtol=1e-7)


def puma():
    rows = [(0.0, 90, 0.6718), (0.4318, 0, 0.0), (0.0203, -90, 0.15005)]
    rows += [(0.0, 90, 0.4318), (0.0, -90, 0.0), (0.0, 0, 0.0)]
    masses = (0.0, 17.4, 4.8, 0.82, 0.34, 0.09)
    centres = np.zeros((6, 3))
    centres[1:] = (
        (-0.3638, 0.006, 0.2275),
        (-0.0203, -0.0141, 0.07),
        (0, 0.019, 0),
        (0, 0, 0),
        (0, 0, 0.032),
    )
    inertias = [(mass, c, np.eye(3) * 1e-3 * mass) for mass, c in zip(masses, centres)]
    table = [(a, np.deg2rad(alpha), d, 0.0) for a, alpha, d in rows]
    return RobotModel.from_dh(table, 'standard', inertias=inertias)


def test_a_payload_adds_its_weight_and_one_of_nothing_changes_nothing():
    model = puma()
    q = np.deg2rad([45.0, 70.0, -100.0, 60.0, 25.0, -140.0])
    motion = np.stack([q, 0.0 * q, 0.0 * q])
    # Of the robotics toolbox for Python.
    expected = [0.0, 16.36782, 4.59518, -0.00517, -0.00394, 0.0]
    found = inverse_dynamics(model, motion)[0]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-5)
    last = 'link6'
    nothing = inverse_dynamics(model.with_payload(last, 0.0), motion)[0]
    np.testing.assert_array_equal(nothing, found)

    def height(angles):
        pose = forward_kinematics(model, angles[None], last).pose
        return (pose @ [0.0, 0.0, 0.1, 1.0])[2]

    steps = 1e-5 * np.eye(6)
    slope = [(height(q + step) - height(q - step)) / 2e-5 for step in steps]
    loaded = inverse_dynamics(model.with_payload(last, 2.5, (0.0, 0.0, 0.1)), motion)[0]
    np.testing.assert_allclose(loaded - found, 2.5 * 9.81 * np.array(slope), atol=1e-8)
