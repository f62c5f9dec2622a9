"""The report: one harmless page that says the truth about every limit."""

import re
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from support import robots
from support.plotting_tools import Page, comparison_of, identification_of, results_of
from support.records import changed

from hodyn_ros import RobotModel
from hodyn_ros.actuators import (
    Actuators,
    SeriesElastic,
    motor_limits,
)
from hodyn_ros.errors import MotionError
from hodyn_ros.identification import Explanation
from hodyn_ros.model.violations import motion_limits
from hodyn_ros.plotting import html_report

pytest.importorskip('plotly', reason='plotly is not installed')

MODEL = RobotModel.from_urdf(robots.TWO_LINK)  # |q| <= 2, |qd| <= 3, |Q| <= 50
ACTUATORS = Actuators(MODEL, {'elbow': SeriesElastic(80.0, 0.2)})
RESULTS = results_of(MODEL, ACTUATORS)
NASTY = (
    '</title></script><script>alert(1)</script>'
    '<img src=x onerror="a()">\' & &amp; <!-- ]]> ${x}'
)


@pytest.fixture(scope='module')
def page():
    bounds = motion_limits(MODEL, {'elbow': {'acceleration': 1.5, 'effort_dot': 1e4}})
    motors = motor_limits(ACTUATORS, {'elbow': {'motor_velocity': 0.9, 'deflection': 5.0}})
    html = html_report(
        MODEL,
        RESULTS,
        bounds,
        actuators=ACTUATORS,
        motor_limits=motors,
        remarks=['By hand.'],
    )
    return Page(html)


@pytest.fixture(scope='module')
def plain():
    return Page(html_report(MODEL, results_of(MODEL)))


def test_every_quantity_is_told_to_be_kept_exceeded_or_not_checked(page):
    rows = {row[0]: row[1:] for row in page.table('What was checked')[1:]}
    assert rows['Position'][:2] == ['✓ kept', '2 of 2']
    assert rows['Acceleration'][:2] == ['✗ exceeded by 1', '1 of 2']
    assert rows['Jerk'] == ['no limits known', '0 of 2', '–', '–']
    assert rows['Motor torque rate'][0] == 'not in the results'
    assert rows['Deflection'][:2] == ['✓ kept', '1 of 2']
    # 0.5 of 2 rad for both joints.
    assert rows['Position'][2] == '25 %'


def test_shares_of_limits_are_those_of_the_worst_samples(page):
    rows = page.table('Share of the limits that the joints use')
    shares = {name: dict(zip(rows[0][1:], cells)) for name, *cells in rows[1:]}
    assert shares['elbow']['Acceleration'].startswith('✗ 133')
    assert shares['shoulder']['Acceleration'] == '–'
    largest = np.abs(RESULTS.effort[:, 0, 0]).max() / 50.0
    assert shares['shoulder']['Torque'] == f'{100 * largest:.2g} %'


def test_no_limits_are_not_told_as_kept():
    endless = np.full(2, np.inf)
    bounds = changed(
        motion_limits(MODEL),
        lower=-endless,
        upper=endless,
        velocity=endless,
        effort=endless,
    )
    page = Page(html_report(MODEL, results_of(MODEL), bounds))
    verdict, unlimited = page.text_of_all('p', 'verdict')
    assert verdict == 'No limits are known, so nothing was checked.'
    assert (
        'No limit is known for the velocity of all joints (up to 1 rad/s in elbow)'
        in unlimited
    )


def test_what_could_not_be_checked_is_not_told_as_kept():
    results = results_of(MODEL)
    motion, effort = results.motion.copy(), results.effort.copy()
    motion[10:20, 1:] = effort[10:20] = np.nan
    page = Page(html_report(MODEL, replace(results, motion=motion, effort=effort)))
    assert page.text_of_all('p', 'verdict')[0] == (
        '2 limits are kept; 4 could not be checked at all samples, because the results do not '
        'hold what they limit.'
    )
    rows = {row[0]: row[1] for row in page.table('What was checked')[1:]}
    assert rows['Velocity'] == 'kept where it is known, at 191 samples or more'
    assert rows['Position'] == '✓ kept'


def test_unknown_samples_do_not_hide_a_limit_that_is_exceeded():
    results = results_of(MODEL)
    effort = results.effort.copy()
    effort[10:20] = np.nan
    effort[30, 0, 1] = -60.0
    page = Page(html_report(MODEL, replace(results, effort=effort)))
    (_, row) = page.table('Limits that are exceeded')
    assert (row[1], row[2], row[6]) == ('elbow', '−60 N m', '30')


def test_page_says_when_by_what_and_from_which_file_it_was_written():
    page = Page(html_report(MODEL, results_of(MODEL), robot_file='/robots/<arm>.urdf'))
    assert page.mistakes == []
    today = datetime.now(timezone.utc)
    days = '|'.join(f'{today - timedelta(days=back):%Y-%m-%d}' for back in (0, 1))
    written = rf'Written on ({days}) at \d\d:\d\d UTC by hodyn_ros \d+\.\d+\.\d+\.'
    assert re.search(written + r' Robot: /robots/<arm>\.urdf\.', page.visible_text())


def test_a_limit_on_one_side_is_checked_and_told():
    bounds = motion_limits(MODEL)
    bounds = changed(bounds, lower=np.full(2, -np.inf), upper=np.array([0.4, 2.0]))
    page = Page(html_report(MODEL, results_of(MODEL), bounds))
    (_, row) = page.table('Limits that are exceeded')
    assert row[:2] == ['Position', 'shoulder']
    rows = {row[0]: row[1:] for row in page.table('What was checked')[1:]}
    assert rows['Position'][:3] == ['✗ exceeded by 1', '2 of 2', '–']
    assert 'limits none to 0.4' in page.visible_text()


@pytest.fixture(scope='module')
def compared():
    found = comparison_of(MODEL)
    identified = identification_of(MODEL, MODEL.joint_names)
    html = html_report(
        MODEL, found.results(MODEL), comparison=found, identification=identified
    )
    return Page(html)


def test_a_page_of_an_identification_begins_with_it_and_holds_the_rest(compared, plain):
    assert compared.mistakes == []
    headings = compared.text_of_all('h2')
    assert headings[:2] == ['Identified parameters', 'Measured and computed']
    rest = [title for title in plain.text_of_all('h2') if title != 'Torque over its rate']
    assert [title for title in headings[2:] if title != 'Remarks'] == rest
    links = {attributes['href'] for attributes in compared.attributes('a')}
    assert '#compared' in links
    assert links <= {f'#{a.get("id")}' for _, a, _ in compared.elements}
    verdicts = compared.text_of_all('p', 'verdict')
    assert verdicts[0] == (
        'The difference is 12 % of the measured efforts; a payload of 1.5 kg at tool would '
        'explain 75 % of it.'
    )
    assert 'Efforts were clipped.' in compared.text_of_all('li')


def test_differences_are_told_by_joint_by_frequency_and_by_what_explains_them(compared):
    head, shoulder, elbow = compared.table('RMS of torques')
    assert head[1:4] == ['Measured', 'Difference', '0 to 0.3 Hz']
    assert ' '.join(shoulder) == 'shoulder 1 0.125 0.01 0.03 0.05 0.07 1.25 0.975'
    assert elbow[:4] == ['elbow', '2', '0.25', '0.02']
    head, *rows = compared.table('Part of the squared difference')
    assert head == ['', 'All joints', 'shoulder', 'elbow']
    assert rows == [
        ['a payload of 1.5 kg at tool', '75 %', '50 %', '90 %'],
        ['friction and offsets', '25 %', '−50 %', '−90 %'],
        ['all of these together', '100 %', '–', '–'],
    ]


def test_identified_parameters_and_what_they_leave_are_listed(compared):
    assert compared.table('Of bodies')[1:] == [
        ['shoulder izz + …', '0.25', '0.013', 'kg m²', '107.5 %']
    ]
    assert compared.table('Of joints')[1:] == [
        ['elbow viscous', '0.5', '–', 'N m s/rad', '10.0 %']
    ]
    # A recording does not know every joint.
    assert compared.table('swing.csv, torques of the joints, RMS [N m]')[1:] == [
        ['elbow', '3', '0.75', '0.0625', '0.0312', '576', '4']
    ]
    unseen = compared.table('Not used to identify: swing.csv, torques of the motors')
    assert unseen[1:] == [['elbow', '3', '0.5', '0.125', '–', '–', '–']]
    assert 'tool carries 1.5 kg with its centre at (0.0100, 0.0000, -0.0200) m' in (
        compared.visible_text()
    )
    assert 'At the boundary.' in compared.text_of_all('li')


def test_names_in_comparisons_and_identifications_are_harmless():
    model = replace(MODEL, joint_names=(NASTY, 'elbow'))
    told = [Explanation(f'{NASTY} kg', np.ones(2), 1.0)] * 2
    found = replace(comparison_of(model, NASTY, told), remarks=(NASTY,))
    identified = identification_of(MODEL, [NASTY, NASTY], NASTY, NASTY, NASTY)
    given = {'comparison': found, 'identification': identified}
    page = Page(html_report(model, found.results(model), **given))
    assert page.mistakes == []
    assert page.attributes('img') == []
    assert len(page.attributes('script')) == 3
    assert page.visible_text().count(NASTY) > 15


def test_long_motions_stay_small_and_keep_their_extremes():
    results = results_of(MODEL, N=100_000, duration=100.0)
    effort = results.effort.copy()
    effort[54_321, 0, 1] = -1e3
    html = html_report(MODEL, replace(results, effort=effort))
    assert len(html.encode()) < 8e6
    page = Page(html)
    panels = page.pictures()
    assert max(len(curve['y']) for panel in panels for curve in panel['curves']) < 3000
    (torque,) = panels[8 + 5]['curves']
    assert torque['y'].min() == pytest.approx(-1e3, rel=1e-6)
    assert torque['x'][torque['y'].argmin()] == pytest.approx(
        results.times[54_321], rel=1e-6
    )
    assert re.search(r'drawn with at most \d+ of the 100000 samples', page.visible_text())


def test_results_without_efforts_are_refused():
    bare = results_of(MODEL, K=3)
    with pytest.raises(MotionError, match='0 of the effort'):
        html_report(MODEL, replace(bare, effort=bare.effort[:, :0]))


def test_nothing_optional_is_imported_before_it_is_used():
    code = (
        'import sys, hodyn_ros.plotting; '
        'print([m for m in ("matplotlib", "plotly", "rerun") if m in sys.modules])'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == '[]'
