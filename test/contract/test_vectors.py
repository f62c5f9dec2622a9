"""The dynamics and kinematics of the package give what vectors.json holds.

`make_vectors.py` says what the numbers are made by. Errors are measured per order of derivative,
relative to the largest value of that order. A model answers first by NumPy, and again when code
has been compiled for the same call: both have to agree with the file.
"""

import json
from math import comb
from pathlib import Path

import numpy as np
import pytest

from hodyn_ros import (
    HodynError,
    RobotModel,
    Wrench,
    base_parameters,
    coriolis_matrix,
    floating_base_forward_dynamics,
    forward_dynamics,
    forward_kinematics,
    friction,
    gravity_effort,
    hybrid_dynamics,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    inverse_dynamics_from_link_motion,
    inverse_kinematics,
    jacobian,
    joint_regressor,
    kinetic_energy,
    mass_matrix,
    moving_base_inverse_dynamics,
    potential_energy,
    regressor,
)
from hodyn_ros.dynamics import (
    ENGINE,
    FORMULATIONS,
    chosen_algorithm,
    distribute_efforts,
    inter_body_wrenches,
    loop_efforts,
    parameter_names,
    tool_weight,
)
from hodyn_ros.errors import MotionError
from hodyn_ros.kinematics import complete_motion

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

FILE = json.loads((Path(__file__).parent / 'vectors.json').read_text())
CASES, ROBOTS = FILE['cases'], FILE['robots']
LOOPS = [name for name in ROBOTS if 'whole' in CASES[name]]
OPEN = [name for name in ROBOTS if name not in LOOPS]
RICH = [name for name in OPEN if 'partials' in CASES[name]]
FRAMES = ('body', 'spatial', 'hybrid')
NUMPY = ['auto', *FORMULATIONS]

rich = pytest.mark.parametrize('name', RICH)
loops = pytest.mark.parametrize('name', LOOPS)


def robot(name):
    """A model that has not computed anything yet."""
    given = ROBOTS[name]
    if 'screws' in given:
        keys = ('screws', 'poses', 'parents', 'inertias', 'gravity')
        return RobotModel.from_body_screws(
            *(given[key] for key in keys[:2]), **{key: given[key] for key in keys[2:]}
        )
    gravity = given.get('gravity', (0.0, 0.0, -9.81))
    return RobotModel.from_urdf(given.get('bundled') or given['urdf'], gravity=gravity)


def values(name, *keys):
    found = CASES[name]
    for key in keys:
        found = found[key]
    return np.array(found)


def wrenches_of(name, orders=3):
    """Wrenches of all frames and signs, and the efforts that they add."""
    found = [(x['wrench'], np.array(x['effort'])) for x in CASES[name]['wrenches']]
    given = [
        Wrench(link, np.array(numbers)[:orders], *rest)
        for (link, numbers, *rest), _ in found
    ]
    return given, [effort[:, :orders] for _, effort in found]


def assert_same(found, expected, axis=1, tolerance=1e-12):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    # Of a derivative that vanishes rounding is left.
    least = 1e-3 * np.abs(expected).max()
    for order, (a, b) in enumerate(
        zip(*(np.moveaxis(x, axis, 0) for x in (found, expected)))
    ):
        error, scale = np.abs(a - b).max(), max(np.abs(b).max(), least)
        assert error <= tolerance * scale, f'order {order}: {error / scale:.1e}'


def answers(model, call):
    """What a model computes first, and, if it is small, once code for this call is compiled."""
    yield call(model)
    if model.n_bodies < 5:
        model.warm_up(0, lambda: call(model))
        yield call(model)


def leibniz(a, b, order):
    """Derivative of the product of a matrix and a vector, with samples and orders in front."""
    return sum(
        comb(order, k) * (a[:, k] @ b[:, order - k, :, None])[..., 0]
        for k in range(order + 1)
    )


# --- Inverse dynamics ---------------------------------------------------------------------------


@pytest.mark.parametrize('algorithm', [*NUMPY, *ENGINE])
def test_every_algorithm_gives_efforts_with_their_derivatives(algorithm):
    formulation = FORMULATIONS.get(algorithm)
    orders = 1 if formulation and formulation.highest_order == 0 else 3
    for name in RICH if algorithm in ENGINE else OPEN:
        motion = values(name, 'motion')[:, : orders + 2]
        found = inverse_dynamics(robot(name), motion, algorithm=algorithm)
        assert_same(found, values(name, 'effort')[:, :orders])


@pytest.mark.parametrize(
    'algorithm',
    ['auto', 'nth_order', 'closed_form', 'lagrange', 'compiled_robot', 'compiled_tree'],
)
def test_eight_derivatives_of_a_motion_give_six_of_the_efforts_machine_code_five(algorithm):
    orders = 6 if algorithm.startswith('compiled') else 7
    motion = values('order six', 'motion')[:, : orders + 2]
    found = inverse_dynamics(robot('panda'), motion, None, algorithm)
    assert_same(found, values('order six', 'effort')[:, :orders])


@pytest.mark.parametrize('algorithm', [*NUMPY, 'compiled_robot', 'compiled_tree'])
@rich
def test_wrenches_add_their_efforts_in_every_frame_and_with_either_sign(name, algorithm):
    formulation = FORMULATIONS.get(algorithm)
    orders = 1 if formulation and formulation.highest_order == 0 else 3
    model, motion = robot(name), values(name, 'motion')[:, : orders + 2]
    given, added = wrenches_of(name, orders)
    bare = values(name, 'effort')[:, :orders]
    assert_same(inverse_dynamics(model, motion, given, algorithm), bare + sum(added))
    if algorithm == 'auto':
        for wrench, effort in zip(given, added):
            assert_same(inverse_dynamics(model, motion, wrench, algorithm), bare + effort)


def test_a_model_computes_by_numpy_first_and_by_compiled_code_when_it_is_warm():
    model, motion = robot('panda'), values('panda', 'motion')
    assert chosen_algorithm(model, motion) == 'nth_order'
    model.warm_up()
    assert chosen_algorithm(model, motion) in ENGINE
    wrench, (effort, *_) = wrenches_of('panda')
    for _ in range(2):
        assert_same(inverse_dynamics(model, motion), values('panda', 'effort'))
        for s in range(2):
            assert_same(inverse_dynamics(model, motion[s]), values('panda', 'effort', s), 0)
        found = inverse_dynamics(model, motion[0], wrench[0])
        assert_same(found, values('panda', 'effort', 0) + effort[0], 0)


@pytest.mark.parametrize(
    'algorithm', ['auto', 'nth_order', 'spatial', 'closed_form', 'engine']
)
@pytest.mark.parametrize('shape', [(2,), (2, 1), (3, 41, 2), (0,)])
def test_leading_axes_are_samples(shape, algorithm):
    model, (wrench, *_), (added, *_) = robot('branches'), *wrenches_of('branches')
    samples = np.arange(np.prod(shape), dtype=int).reshape(shape) % 2
    motion = values('branches', 'motion')[samples]
    expected = (values('branches', 'effort') + added)[samples]
    out = np.full(expected.shape, np.nan)
    for options in ({}, {'out': out}, {'num_threads': 2}):
        found = inverse_dynamics(model, motion, wrench, algorithm, **options)
        assert found.shape == (*shape, 3, model.n_joints)
        if found.size:
            assert_same(found, expected, -2)
        assert found is out or 'out' not in options
    # One motion and many wrenches.
    repeated = np.broadcast_to(wrench.values, (*shape, 3, 6))
    many = Wrench(wrench.link, repeated, wrench.expressed_in, wrench.acting)
    found = inverse_dynamics(model, values('branches', 'motion', 0), many, algorithm)
    if found.size:
        assert_same(found, np.broadcast_to(expected[(0,) * len(shape)], found.shape), -2)


def test_friction_and_armature_are_part_of_the_efforts_of_every_algorithm():
    laws, armature = CASES['friction']['laws'], 0.1 + np.arange(7)
    model = robot('panda').with_friction(
        {
            joint: getattr(friction, law)(*numbers)
            for joint, (law, numbers) in zip(ROBOTS['panda']['joints'], laws)
        }
    )
    model = model.with_armature(dict(zip(model.body_names, armature)))
    motion, added = values('panda', 'motion'), values('friction', 'effort')
    expected = values('panda', 'effort') + added + armature * motion[:, 2:]
    for algorithm in (*NUMPY[:-1], *ENGINE):
        assert_same(inverse_dynamics(model, motion, algorithm=algorithm), expected)
    state = motion[:, :2]
    for found in answers(model, lambda model: forward_dynamics(model, state, expected)):
        assert_same(found, motion[:, 2:], tolerance=1e-11)
    T = values('panda', 'kinetic_energy')[:, 0] + 0.5 * motion[:, 1] ** 2 @ armature
    assert_same(kinetic_energy(model, state)[:, 0], T, 0)
    Y = joint_regressor(model, motion, [getattr(friction, law)(*x) for law, x in laws[:5]])
    for j in range(5):
        assert_same(Y[:, :, j, 5 * j + j], added[:, :, j])


# --- Terms of the equations ---------------------------------------------------------------------


@pytest.mark.parametrize('name', OPEN)
def test_mass_matrix_weight_and_energies_with_their_derivatives(name):
    model, motion = robot(name), values(name, 'motion')
    for function, key, given in (
        (mass_matrix, 'mass_matrix', motion[:, :3]),
        (gravity_effort, 'weight', motion[:, :3]),
        (kinetic_energy, 'kinetic_energy', motion[:, :4]),
        (potential_energy, 'potential_energy', motion[:, :3]),
    ):
        for found in answers(model, lambda model, f=function, x=given: f(model, x)):
            assert_same(found, values(name, key))


@pytest.mark.parametrize('skew', [True, False])
@pytest.mark.parametrize('name', [*RICH, *LOOPS])
def test_coriolis_matrices_give_what_the_other_terms_leave(name, skew):
    model, motion = robot(name), values(name, 'motion')
    M, rest = values(name, 'mass_matrix'), values(name, 'effort') - values(name, 'weight')
    for C in answers(model, lambda model: coriolis_matrix(model, motion[:, :4], skew)):
        for order in range(3):
            left = rest[:, order] - leibniz(M, motion[:, 2:], order)
            error = np.abs(leibniz(C, motion[:, 1:], order) - left).max()
            assert error <= 1e-12 * np.abs(rest[:, order]).max()
        for order in range(2):
            D = M[:, order + 1] - 2.0 * C[:, order]
            qd = motion[:, 1, :, None]
            if order == 0:
                assert (
                    np.abs(np.swapaxes(qd, 1, 2) @ D @ qd).max() < 1e-12 * np.abs(D).max()
                )
            if skew:
                assert np.abs(D + np.swapaxes(D, 1, 2)).max() <= 1e-12 * np.abs(D).max()


@rich
def test_regressor_has_the_efforts_of_a_unit_of_each_parameter(name):
    model, motion = robot(name), values(name, 'motion', 0)[:4]
    given = CASES[name]['regressor']
    units = ('mass', 'hx', 'hy', 'hz', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    expected = {
        f'{joint} {unit}': np.array(column)
        for joint, columns in given.items()
        for unit, column in zip(units, columns)
    }
    names = parameter_names(model)
    assert sorted(names) == sorted(expected)
    expected = np.stack([expected[name] for name in names], axis=-1)
    for found in answers(model, lambda model: regressor(model, motion)):
        assert_same(found, expected, 0)
    effort = expected @ model.inertial_parameters
    assert_same(effort, values(name, 'effort', 0)[:2], 0)


def test_base_parameters_are_as_many_as_are_known_and_determine_the_efforts():
    model, motion = robot('panda'), values('panda', 'motion')
    found = base_parameters(model)
    assert found.rank == 43  # Gaz et al. 2019
    base = found.mapping @ model.inertial_parameters
    effort = regressor(model, motion)[..., found.independent] @ base
    assert_same(effort, values('panda', 'effort'))


@rich
def test_partial_derivatives_of_the_efforts_and_of_their_derivatives(name):
    model, motion = robot(name), values(name, 'motion', 0)
    for found in answers(model, lambda model: inverse_dynamics_derivatives(model, motion)):
        assert_same(found, values(name, 'partials'), 0)
    wrenches, _ = wrenches_of(name, 2)
    motion = motion[:4]
    found = inverse_dynamics_derivatives(model, motion, wrenches)
    assert_same(found, values(name, 'partials_of_wrenches'), 0)


@rich
def test_joints_transmit_loads_and_wrenches_of_all_links_behind_them(name):
    model, motion = robot(name), values(name, 'motion', 0)
    expected = np.stack([values(name, 'inter_body', j) for j in model.body_names], axis=1)
    assert_same(inter_body_wrenches(model, motion, wrenches_of(name)[0]), expected, 0)


# --- Forward dynamics ---------------------------------------------------------------------------


@pytest.mark.parametrize('name', OPEN)
def test_efforts_cause_the_motion_that_needs_them(name):
    model, motion, effort = robot(name), values(name, 'motion'), values(name, 'effort')
    condition = np.linalg.cond(values(name, 'mass_matrix')[:, 0]).max()
    algorithms = ['auto', 'mass_matrix'] if name in RICH else ['auto']
    if name in RICH and model.n_bodies == model.n_joints:
        algorithms.append('articulated_bodies')
    for algorithm in algorithms:

        def call(model, algorithm=algorithm):
            return forward_dynamics(model, motion[:, :2], effort, algorithm=algorithm)

        for found in answers(model, call):
            assert_same(found, motion[:, 2:], tolerance=1e-13 * condition)


@rich
def test_wrenches_act_on_accelerations_and_prescribed_joints_too(name):
    model, motion = robot(name), values(name, 'motion')
    wrenches, added = wrenches_of(name)
    effort = values(name, 'effort') + sum(added)
    found = forward_dynamics(model, motion[:, :2], effort, wrenches)
    assert_same(found, motion[:, 2:], tolerance=1e-9)
    known, asked = motion.copy(), effort.copy()
    known[:, 2:, 1:] = np.nan
    asked[:, :, 0] = np.nan
    found = hybrid_dynamics(model, known, asked, model.joint_names[:1], wrenches)
    assert_same(found.motion, motion, tolerance=1e-9)
    assert_same(found.effort, effort, tolerance=1e-9)


def test_a_base_that_moves_and_one_that_floats():
    given, case = CASES['flying'], robot('branches')
    model = case.with_payload(case.base_link, *given['inertial'])
    motion, effort, wrench = (
        values('flying', x) for x in ('motion', 'effort', 'base_wrench')
    )
    pose = values('flying', 'base', 'pose')
    for frame in FRAMES:
        base = pose, values('flying', 'base', frame, 'twist')

        def moved(model, base=base, frame=frame):
            return moving_base_inverse_dynamics(model, motion, base, expressed_in=frame)

        def flown(model, base=base, frame=frame):
            return floating_base_forward_dynamics(
                model, motion[:, :2], base, effort, base_wrench=wrench, expressed_in=frame
            )

        for found in answers(model, moved):
            assert_same(found.effort, effort)
            assert_same(found.base_wrench, wrench)
        for found in answers(model, flown):
            assert_same(found.acceleration, motion[:, 2:], tolerance=1e-10)
            assert_same(
                found.twist_rate,
                values('flying', 'base', 'body', 'twist')[:, 1:],
                tolerance=1e-10,
            )


# --- Kinematics ---------------------------------------------------------------------------------


@pytest.mark.parametrize('frame', FRAMES)
@pytest.mark.parametrize('name', OPEN)
def test_poses_twists_and_jacobians_of_links_and_weights_of_tools_on_them(name, frame):
    model, motion = robot(name), values(name, 'motion')
    for link in CASES[name]['links']:
        expected = CASES[name]['links'][link]
        for found in answers(
            model, lambda m, x=link: forward_kinematics(m, motion, x, frame)
        ):
            assert_same(found.pose, expected['pose'], tolerance=1e-13)
            assert_same(found.twist, expected[frame]['twist'])
        J = jacobian(model, motion[:, :3], link, frame)
        assert_same(J, expected[frame]['jacobian'])
        if frame != 'hybrid':
            pose, twist = np.array(expected['pose']), np.array(expected['body']['twist'])
            found = tool_weight(pose, twist, model.gravity, 2.0, (0.1, -0.2, 0.3), frame)
            assert_same(found, expected[frame]['tool'])


@pytest.mark.parametrize('frame', FRAMES)
def test_the_motion_of_a_link_gives_joints_and_efforts_back(frame):
    model, motion = robot('ur5e'), values('ur5e', 'motion')
    link = (
        values('ur5e', 'links', 'tool0', 'pose'),
        values('ur5e', 'links', 'tool0', frame, 'twist'),
    )
    guess = motion[:, 0] + 0.02
    for s in range(2):
        given = link[0][s], link[1][s]
        found = inverse_kinematics(model, given, 'tool0', frame, guess=guess[s])
        assert_same(found.motion, motion[s], 0, tolerance=1e-10)
        found = inverse_dynamics_from_link_motion(
            model, given, 'tool0', frame, guess=guess[s]
        )
        assert_same(found.effort, values('ur5e', 'effort', s), 0, tolerance=1e-10)


# --- Closed loops -------------------------------------------------------------------------------


@loops
def test_independent_joints_determine_the_motion_of_all_others(name):
    model, motion = robot(name), values(name, 'motion')
    order = [CASES[name]['joints'].index(x) for x in model.closure.tree.joint_names]
    for found in answers(model, lambda model: complete_motion(model, motion)):
        assert_same(found, values(name, 'whole')[..., order])


@pytest.mark.parametrize('algorithm', ['auto', *ENGINE, 'nth_order', 'lagrange', 'hybrid'])
@loops
def test_efforts_of_robots_with_closed_loops(name, algorithm):
    model, motion = robot(name), values(name, 'motion')
    found = inverse_dynamics(model, motion, algorithm=algorithm)
    assert_same(found, values(name, 'effort'), tolerance=1e-11)
    assert_same(loop_efforts(model, motion).effort, values(name, 'effort'), tolerance=1e-11)


@loops
def test_mass_matrices_and_accelerations_of_robots_with_closed_loops(name):
    model, motion, effort = robot(name), values(name, 'motion'), values(name, 'effort')
    for found in answers(model, lambda model: mass_matrix(model, motion[:, :3])):
        assert_same(found, values(name, 'mass_matrix'), tolerance=1e-11)
    assert_same(
        gravity_effort(model, motion)[:, :3], values(name, 'weight'), tolerance=1e-11
    )
    for found in answers(
        model, lambda model: forward_dynamics(model, motion[:, :2], effort)
    ):
        assert_same(found, motion[:, 2:], tolerance=1e-10)


@loops
def test_more_motors_than_independent_joints_share_the_least_efforts(name):
    model, motion, effort = robot(name), values(name, 'motion'), values(name, 'effort')
    joints = CASES[name]['joints']
    motors = [*model.joint_names, next(x for x in joints if x not in model.joint_names)]
    G = values(name, 'velocities')[:, :, [joints.index(x) for x in motors]]
    weights = 1.0 + np.arange(len(motors))
    preload = np.outer([1.0, 0.0, 0.0], 3.0 - weights)
    found = distribute_efforts(model, motion, effort, motors, weights, preload)
    root, held = np.sqrt(weights), preload[0]
    least = [
        held + np.linalg.pinv(g.T / root) @ (q - g.T @ held) / root
        for g, q in zip(G[:, 0], effort[:, 0])
    ]
    assert_same(found[:, 0], least, tolerance=1e-10)
    for order in range(3):
        shared = leibniz(np.swapaxes(G, -1, -2), found, order)
        assert_same(shared, effort[:, order], tolerance=1e-10)


# --- Refusals -----------------------------------------------------------------------------------

CALLS = {
    'inverse dynamics': (inverse_dynamics, 3),
    'partial derivatives': (inverse_dynamics_derivatives, 3),
    'mass matrix': (mass_matrix, 1),
    'Coriolis matrix': (coriolis_matrix, 2),
    'weight': (gravity_effort, 1),
    'kinetic energy': (kinetic_energy, 2),
    'potential energy': (potential_energy, 1),
    'regressor': (regressor, 3),
    'inter-body wrenches': (inter_body_wrenches, 3),
    'link': (lambda model, x: forward_kinematics(model, x, 'tool'), 1),
    'Jacobian': (lambda model, x: jacobian(model, x, 'tool'), 1),
    'state': (lambda model, x: forward_dynamics(model, x, np.zeros((1, 2))), 2),
    'efforts': (lambda model, x: forward_dynamics(model, np.zeros((2, 2)), x), 1),
}


@pytest.mark.parametrize('call', CALLS)
def test_motions_that_cannot_be_used_are_refused_warm_as_cold(call):
    function, least = CALLS[call]
    model, right = robot('two_link'), np.zeros((least, 2))
    broken = right.copy()
    broken[-1, 1] = np.nan
    wrong = [broken, broken + np.inf, right[:, :1], right[0], right[: least - 1]]
    wrong += ['abc', right * 1j]
    for _ in answers(model, lambda model: function(model, right)):
        for motion in wrong:
            with pytest.raises(MotionError):
                function(model, motion)


def test_names_and_outputs_that_cannot_be_used_are_refused():
    model, motion = robot('panda'), values('panda', 'motion')
    wrench = Wrench('panda_link8', np.zeros((3, 6)))
    for call in (
        lambda: inverse_dynamics(model, motion, algorithm='fastest'),
        lambda: inverse_dynamics(model, motion, algorithm='newton_euler'),
        lambda: inverse_dynamics(model, motion, out=np.empty((2, 3, 6))),
        lambda: inverse_dynamics(model, motion, out=motion[:, :3]),
        lambda: inverse_dynamics(model, motion, Wrench('elbow', np.zeros((3, 6)))),
        lambda: inverse_dynamics(model, motion[:, :4], wrench),
        lambda: Wrench('panda_link8', np.full((3, 6), np.nan)),
        lambda: forward_kinematics(model, motion, 'elbow'),
        lambda: jacobian(model, motion, None, 'world'),
        lambda: hybrid_dynamics(model, motion, motion[:, 2:], ['elbow']),
        lambda: loop_efforts(model, motion),
        lambda: complete_motion(model, motion),
    ):
        with pytest.raises(HodynError):
            call()
