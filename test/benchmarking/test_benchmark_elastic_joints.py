"""The benchmark of laws for elastic joints runs, and its parts do what they say."""

import importlib
import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec('mujoco') is None:
    pytest.skip('mujoco is not installed', allow_module_level=True)

from support import control_simulation  # noqa: E402
from support.control_cases import (  # noqa: E402
    CONDITIONS,
    MOTION,
    PERIOD,
    STIFFNESS,
    TORQUE_LIMITS,
    TUNING_MOTION,
    Condition,
    Diverged,
    Run,
)

from hodyn_ros.control import make_controller  # noqa: E402

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning')


@pytest.mark.slow
def test_tables_and_picture_are_written(benchmark_module, tmp_path, capsys):
    core = pytest.importorskip('docutils.core')
    include = tmp_path / 'some.inc'
    arguments = [
        '--size',
        'tiny',
        '--folder',
        str(tmp_path / 'made'),
        '--include',
        str(include),
    ]
    assert benchmark_module.main(arguments) == 0
    text = include.read_text()
    assert text in capsys.readouterr().out
    document = core.publish_doctree(text, settings_overrides={'report_level': 5})
    assert document.parse_messages == []
    for row in ('exact', 'fast'):
        assert sum(line.startswith(row) for line in text.splitlines()) == 2
    assert (tmp_path / 'made' / 'elastic_joints.png').read_bytes()[:4] == b'\x89PNG'


def record(rms=1e-3, rate=0.0, torque=1.0):
    steps = np.zeros((200, 7))
    steps[:, 1] = torque
    steps[1::2, 1] += rate * PERIOD
    return Run(PERIOD * np.arange(201), np.full((201, 7), rms), steps, TORQUE_LIMITS)


def test_one_rule_tunes_the_laws(benchmark_module):
    job, chosen = benchmark_module.Job, benchmark_module.chosen
    slow, fast, loud, cut, lost = (job('FF', w) for w in (10.0, 20.0, 30.0, 40.0, 50.0))
    tried = {
        slow: record(3e-3, 900.0),
        fast: record(2e-3, 900.0),
        loud: record(1e-3, 1100.0),
        cut: record(1e-3, torque=87.0),
        lost: None,
    }
    assert chosen(tried) == fast
    del tried[slow], tried[fast], tried[cut]
    assert chosen(tried) == loud  # none is calm
    assert not np.all(TUNING_MOTION([0.0])[0, 0] == MOTION([0.0])[0, 0])


def test_a_loop_that_diverges_is_in_the_table(benchmark_module):
    module = benchmark_module
    size = module.Size(('exact', module.HUNTING), (), {'mujoco': 2})
    found = {module.Job('FF', 20.0, 'mujoco', row): record() for row in size.rows}
    found |= {module.Job('linearisation', 50.0, 'mujoco', row): None for row in size.rows}
    text = module.tables(size, {'FF': 20.0, 'linearisation': 50.0}, found)
    rows = [line.split() for line in text.splitlines() if line.startswith('exact  ')]
    assert rows[0] == ['exact', '1', '/', '1', 'diverges']
    assert 'linearisation, 50: diverges' in text.replace('\n', ' ')


def rms(kind, w, condition, stiffness=STIFFNESS, lead=0.5 * PERIOD):
    """Error of a law [mrad], infinite if it diverges."""
    model = control_simulation.panda()
    actuators = control_simulation.drives(model, stiffness)
    law = make_controller(model, kind, actuators, w, TORQUE_LIMITS, lead)
    try:
        return control_simulation.follow(law, condition, stiffness).rms
    except Diverged:
        return np.inf


def test_each_derivative_lowers_the_error_if_the_robot_is_known_exactly():
    none, first, second = (
        rms(f'feed_forward_{order}', 20.0, CONDITIONS['exact']) for order in range(3)
    )
    assert none > 10.0 * first
    assert first > 8.0 * second


@pytest.mark.slow
@pytest.mark.parametrize('delay', [0, 1])
def test_a_lead_beyond_half_a_period_is_for_feed_forward_only(delay):
    """Exact linearisation predicts with the command that it is about to give."""
    condition, soft = Condition(delay=delay), np.full(7, 2000.0)
    half, beyond = (
        rms('flatness', 150.0, condition, soft, lead) for lead in (5e-4, 1.5e-3)
    )
    assert half < 0.1 and beyond > 100.0
    assert rms('feed_forward_2', 40.0, condition, soft, 1.5e-3) < 0.1


@pytest.mark.slow
def test_integral_removes_what_a_payload_leaves(benchmark_module):
    robot = benchmark_module.known(CONDITIONS['exact'], STIFFNESS)
    errors = [
        control_simulation.follow(make(robot, 20.0), CONDITIONS['payload 1 kg']).rms
        for make in (
            benchmark_module.of_kind('feed_forward_2'),
            benchmark_module.with_integral,
        )
    ]
    assert errors[1] < 0.6 * errors[0]


def test_what_is_identified_is_known_to_a_percent(benchmark_module):
    condition = CONDITIONS['all, known to 1 %']
    model, actuators, _ = benchmark_module.known(condition, STIFFNESS)
    K = [actuators[name].spring.stiffness for name in model.joint_names]
    np.testing.assert_allclose(K, 0.95 * 1.01 * STIFFNESS)
    added = model.M_body[-1, 3, 3] - control_simulation.panda().M_body[-1, 3, 3]
    assert added == pytest.approx(0.99)
