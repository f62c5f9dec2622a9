"""Headroom: what a share of a limit that is left to feedback does to every verdict."""

import numpy as np
import pytest
from support.command_tools import as_json, call

from hodyn_ros import RobotModel
from hodyn_ros.analysis import checked_margins, motion_limits, with_margins
from hodyn_ros.errors import ModelError

RATE = 1000.0  # N m/s, of the Panda


@pytest.fixture(scope='module')
def fast(tmp_path_factory):
    from hodyn_ros.cli import run

    folder = tmp_path_factory.mktemp('motions')
    assert run(['demo', '-o', str(folder)]) == 0
    return folder / 'fast.csv'


def limits_said(found):
    return {
        item['limit'] for item in found['violations'] if item['quantity'] == 'effort_dot'
    }


def test_a_motion_is_judged_by_what_is_left_of_a_limit(fast, capsys):
    whole = as_json(capsys, 'check', 'panda', fast, code=1)
    less = as_json(capsys, 'check', 'panda', fast, '--margin', 'torque_rate=20%', code=1)
    assert {abs(x) for x in limits_said(whole)} == {RATE}
    assert {abs(x) for x in limits_said(less)} == {0.8 * RATE}
    assert (whole['margins'], less['margins']) == ({}, {'effort_dot': 0.2})
    assert less['limits_from'].endswith(', less a margin of 20 % (torque rate)')
    _, said, _ = call(capsys, 'check', 'panda', fast, '--margin', 'torque_rate=20%')
    assert 'less a margin of 20 % (torque rate)' in said


def test_a_new_timing_keeps_what_is_left_and_says_so(fast, tmp_path, capsys):
    slower = tmp_path / 'slower.csv'
    words = '--margin', 'torque_rate=0.4', '--margin', 'velocity=10%'
    code, said, _ = call(capsys, 'retime', 'panda', fast, '-o', slower, *words)
    assert code == 0
    assert 'less margins of 40 % (torque rate), 10 % (velocity)' in said
    used = {
        item['quantity']: max(abs(x) for x in item['shares'].values() if x is not None)
        for item in as_json(capsys, 'check', 'panda', slower)['used']
        if item['is_checked']
    }
    assert used['effort_dot'] == pytest.approx(0.6, abs=0.1)
    assert used['effort_dot'] <= 0.6 + 1e-9
    assert used['velocity'] <= 0.9 + 1e-9


def test_margins_of_a_file_hold_until_an_option_says_otherwise(fast, tmp_path, capsys):
    file = tmp_path / 'margins.yaml'
    file.write_text('margins: {torque_rate: 20%, torque: 0.5}\n')
    words = 'check', 'panda', fast, '--config', file
    assert as_json(capsys, *words, code=1)['margins'] == {'effort_dot': 0.2, 'effort': 0.5}
    found = as_json(capsys, *words, '--config', 'margins.torque_rate:=0.1', code=1)
    assert found['margins']['effort_dot'] == 0.1
    found = as_json(capsys, *words, '--margin', 'torque=0', code=1)
    assert found['margins'] == {'effort_dot': 0.2, 'effort': 0.0}
    assert '(torque)' not in found['limits_from']


def test_a_robot_stops_at_its_limits_whatever_is_left_to_feedback(fast, tmp_path, capsys):
    file = tmp_path / 'margins.yaml'
    file.write_text('margins: {torque_rate: 20%}\n')
    words = 'check', 'panda', fast, '--recorded', 'commanded'
    found = as_json(capsys, *words, '--config', file, code=1)
    assert found['margins'] == {}
    code, _, said = call(capsys, *words, '--margin', 'torque_rate=20%')
    assert code == 2
    assert 'a robot stops at its limits' in said


@pytest.mark.every_case
@pytest.mark.parametrize(
    'word, said',
    [
        ('torqe=20%', '(did you mean torque?), expected one of velocity, acceleration'),
        ('position=20%', 'Positions have no margin'),
        ('torque=2', 'from 0 to less than 1'),
        ('torque=100%', 'from 0 to less than 1'),
        ('torque=nan', 'from 0 to less than 1'),
        ('torque=-0.1', 'from 0 to less than 1'),
        ('torque', 'not of the form QUANTITY=SHARE'),
        ('torque=20%%', 'from 0 to less than 1'),
    ],
)
def test_a_margin_that_cannot_be_is_refused(word, said, fast, capsys):
    code, _, error = call(capsys, 'check', 'panda', fast, '--margin', word)
    assert code == 2
    assert said in error


@pytest.mark.parametrize('again', ['torque_rate=10%', 'effort_dot=10%'])
def test_a_margin_that_is_given_twice_is_refused(again, fast, capsys):
    words = '--margin', 'torque_rate=20%', '--margin', again
    code, _, error = call(capsys, 'check', 'panda', fast, *words)
    assert code == 2
    assert '--margin of torque rate is given twice' in error


def test_a_margin_of_motors_without_actuators_is_said_to_have_no_effect(fast, capsys):
    words = 'check', 'panda', fast, '--margin', 'motor_torque=20%', '--margin', 'torque=0.1'
    found = as_json(capsys, *words, code=1)
    assert found['margins'] == {'effort': 0.1}
    assert found['limits_from'].endswith(', less a margin of 10 % (torque)')
    _, said, error = call(capsys, *words)
    assert (
        'The margin of motor torque has no effect: no actuators are given.' in said + error
    )


@pytest.mark.parametrize(
    'margins, said',
    [
        ({'effort_dt': 0.2}, 'expected one of'),
        ({'lower': 0.2}, 'expected one of'),
        ({'effort_dot': 20}, 'from 0 to less than 1'),
        ({'effort_dot': -0.5}, 'from 0 to less than 1'),
        ({'effort_dot': float('nan')}, 'from 0 to less than 1'),
        ({'effort_dot': 0.1, 'torque_rate': 0.2}, 'twice'),
        ([('effort_dot', 0.2)], 'expected shares by the names'),
    ],
)
def test_margins_of_limits_are_checked(margins, said):
    with pytest.raises(ModelError, match=said):
        with_margins(RobotModel.from_urdf('panda').limits, margins)


def test_margins_of_limits_have_the_names_and_percentages_of_checked_margins():
    model = RobotModel.from_urdf('panda')
    limits = motion_limits(model, {'panda_joint2': {'effort_dot': 500.0}})
    less = with_margins(limits, {'torque_rate': '20%', 'velocity': 0.5})
    assert less.effort_dot[1] == 400.0
    listed = limits._replace(velocity=limits.velocity.tolist())
    np.testing.assert_array_equal(
        with_margins(listed, {'velocity': 0.5}).velocity, less.velocity
    )


def test_margins_scale_all_limits_but_those_of_positions():
    model = RobotModel.from_urdf('panda')
    limits = motion_limits(model, {'panda_joint2': {'effort_dot': 500.0}})
    margins = checked_margins({'torque_rate': '20%', 'velocity': 0.1, 'motor_torque': 0.3})
    less = with_margins(limits, margins)
    np.testing.assert_array_equal(less.velocity, 0.9 * limits.velocity)
    assert less.effort_dot[1] == pytest.approx(400.0)
    assert np.isinf(less.effort_dot[0])
    np.testing.assert_array_equal(less.upper, limits.upper)
    np.testing.assert_array_equal(less.effort, limits.effort)
    with pytest.raises(ModelError, match='twice'):
        checked_margins({'torque_rate': 0.1, 'effort_dot': 0.2})
