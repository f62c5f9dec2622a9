"""The report: one harmless page that says the truth about every limit."""

import re
import runpy
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support import robots
from support.plotting_tools import Page, comparison_of, identification_of, results_of

from hodyn_ros import RobotModel, forward_kinematics
from hodyn_ros.actuators import (
    Actuators,
    SeriesElastic,
    find_motor_violations,
    motor_limits,
)
from hodyn_ros.errors import ActuatorError, MotionError, ResourceError
from hodyn_ros.files import Samples, compute
from hodyn_ros.identification import Explanation
from hodyn_ros.model.limits import Violation, find_violations, motion_limits
from hodyn_ros.plotting import html_report

pytest.importorskip('plotly', reason='plotly is not installed')

ROOT = Path(__file__).resolve().parents[2]
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


def test_elements_are_nested_as_they_should(page):
    assert page.mistakes == []
    identifiers = [
        attributes['id'] for _, attributes, _ in page.elements if 'id' in attributes
    ]
    assert len(identifiers) == len(set(identifiers))


def test_page_needs_nothing_from_anywhere(page):
    for _, attributes, _ in page.elements:
        assert 'src' not in attributes
        assert (attributes.get('href') or '#').startswith('#')
    assert page.attributes('link') == []
    (policy,) = [
        attributes['content']
        for attributes in page.attributes('meta')
        if attributes.get('http-equiv') == 'Content-Security-Policy'
    ]
    # A browser that obeys this does not ask any server for anything.
    assert "default-src 'none'" in policy
    assert 'http' not in policy
    (style,) = page.text_of_all('style')
    assert '@import' not in style
    assert 'url(' not in style


def test_library_is_part_of_the_page(page):
    scripts = page.text_of_all('script')
    assert any('plotly.js v' in script[:200] for script in scripts)


def test_links_lead_to_places_in_the_page(page):
    identifiers = {attributes.get('id') for _, attributes, _ in page.elements}
    links = [attributes['href'][1:] for attributes in page.attributes('a')]
    assert set(links) <= identifiers
    assert {'joint-1', 'joint-2', 'checks', 'energy'} <= set(links)


def test_exceeded_limits_are_told_with_value_limit_and_time(page):
    bounds = motion_limits(MODEL, {'elbow': {'acceleration': 1.5, 'effort_dot': 1e4}})
    (worst,) = find_violations(MODEL, bounds, RESULTS.motion, RESULTS.effort)
    header, first, second = page.table('Limits that are exceeded')
    assert header == [
        'Quantity',
        'Joint or motor',
        'Value',
        'Limit',
        'Exceeded by',
        'At',
        'Sample',
    ]
    # 0.5 * 2^2 sin(2 t) is largest where 2 t = pi / 2 or 3 pi / 2.
    assert abs(worst.value) == pytest.approx(2.0, rel=1e-3)
    sign = '−' if worst.value < 0.0 else ''
    assert first[:5] == [
        'Acceleration',
        'elbow',
        f'{sign}{abs(worst.value):.4g} rad/s²',
        f'{sign}1.5 rad/s²',
        f'{abs(worst.value) - 1.5:.4g} rad/s² (33 %)',
    ]
    assert first[5:] == [f'{RESULTS.times[worst.sample]:.4f} s', str(worst.sample)]
    assert second[:2] == ['Motor velocity', 'elbow']
    verdict, unlimited = page.text_of_all('p', 'verdict')
    assert verdict == '✗ 2 limits are exceeded.'
    assert (
        'the acceleration of shoulder (up to 0.5 rad/s^2 in shoulder); jerk of all'
        in unlimited
    )


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


def test_kept_limits_are_told_as_such(plain):
    assert plain.text_of_all('p', 'verdict')[0] == '✓ All 6 known limits are kept.'


def test_no_limits_are_not_told_as_kept():
    endless = np.full(2, np.inf)
    bounds = motion_limits(MODEL)._replace(
        lower=-endless, upper=endless, velocity=endless, effort=endless
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


def test_efforts_of_fewer_orders_than_the_motion_has_are_checked_all_the_same():
    results = results_of(MODEL)
    effort = results.effort[:, :1].copy()
    effort[30, 0, 1] = -60.0
    bounds = motion_limits(MODEL, {'elbow': {'jerk': 0.1, 'effort_dot': 0.1}})
    page = Page(html_report(MODEL, replace(results, effort=effort), bounds))
    rows = page.table('Limits that are exceeded')[1:]
    assert [row[:2] for row in rows] == [['Jerk', 'elbow'], ['Torque', 'elbow']]


def test_violations_that_are_given_are_those_that_are_told():
    given = Violation('effort', 'elbow', -75.0, -50.0, 20)
    page = Page(html_report(MODEL, results_of(MODEL), violations=[given]))
    (_, row) = page.table('Limits that are exceeded')
    assert row == [
        'Torque',
        'elbow',
        '−75 N m',
        '−50 N m',
        '25 N m (50 %)',
        '0.2000 s',
        '20',
    ]
    marked = [panel for panel in page.pictures() if panel['marks']]
    assert len(marked) == 2  # over time and in the portrait
    assert marked[0]['marks'] == [[0.2, -75.0]]


def test_robot_is_summed_up(page):
    rows = {row[0]: row[1:] for row in page.table('Joints and their limits')[1:]}
    assert rows['elbow'] == [
        'revolute',
        'rad, N m, s',
        '−2',
        '2',
        '3',
        '1.5',
        '–',
        '50',
        '10000',
        '–',
    ]
    masses = page.table('Bodies')[1:]
    assert masses == [['shoulder', 'upper', '1'], ['elbow', 'fore, tool', '0.7']]
    assert 'Moving mass 1.7 kg' in page.visible_text()
    assert 'By hand.' in page.text_of_all('li')


def test_limits_that_fall_towards_the_position_are_named():
    model = RobotModel.from_urdf('fr3')
    still = np.zeros((2, 5, 7))
    still[:, 0] = [0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.7]
    results = compute(model, Samples(model.joint_names, np.arange(2.0), still))
    page = Page(html_report(model, results))
    names = ', '.join(model.joint_names)
    assert f'fall towards those of the position: {names}.' in page.visible_text()
    row = page.table('Joints and their limits')[1]
    assert len(row) == len(page.table('Joints and their limits')[0])


def test_remarks_of_the_results_and_of_the_robot_are_passed_on():
    with pytest.warns(match='mass'):
        model = RobotModel.from_urdf(robots.TWO_LINK.replace('value="0.7"', 'value="0"'))
    results = results_of(model, remarks=('Derivatives are estimated.',), start=10**18)
    page = Page(html_report(model, results))
    items = page.text_of_all('li')
    assert 'Derivatives are estimated.' in items
    assert set(model.warnings) <= set(items)
    assert 'Times count from 2001-09-09 01:46:40 UTC.' in page.visible_text()


def test_pictures_hold_the_numbers_of_all_orders(page):
    panels = page.pictures()
    expected = [RESULTS.motion[:, k, 0] for k in range(5)]
    expected += [RESULTS.effort[:, k, 0] for k in range(3)]
    for panel, values in zip(panels, expected):
        (curve,) = panel['curves']
        np.testing.assert_allclose(curve['x'], RESULTS.times, rtol=1e-6)
        np.testing.assert_allclose(curve['y'], values, atol=1e-6 * np.abs(values).max())
    assert [panel['yTitle'] for panel in panels[:2]] == ['q [rad]', 'q′ [rad/s]']
    assert (panels[0]['yUnit'], panels[0]['yLimits']) == ('rad', [-2.0, 2.0])
    assert panels[2]['yLimits'] == [None, None]


def test_every_picture_has_its_place_caption_and_description(page):
    places = [int(a['data-picture']) for a in page.attributes('div') if 'data-picture' in a]
    assert places == list(range(len(page.pictures())))
    # 8 orders of 2 joints, 2 portraits, 1 deflection, 2 motors with 3 quantities, 2 of energy.
    assert len(places) == 16 + 2 + 1 + 6 + 2
    for figure in page.indices('figure'):
        tags = [page.elements[i][0] for i in page.children(figure)]
        assert tags == ['figcaption', 'div']
        _, plot = page.children(figure)
        attributes = page.elements[plot][1]
        assert attributes['role'] == 'img'
        assert len(attributes['aria-label']) > 20


def test_robot_is_shown_in_motion_with_the_shares_of_its_torques(page):
    robot = page.robot()
    F, n = len(robot['times']), MODEL.n_joints
    assert 100 < F <= len(RESULTS.times)
    rows = np.searchsorted(RESULTS.times, robot['times'] - 1e-6)
    points = robot['points'].reshape(F, -1, 3)
    # The base, the two links, and the tool at the end.
    for point, link in zip(range(4), ('base', 'upper', 'fore', 'tool')):
        poses = forward_kinematics(MODEL, RESULTS.motion[rows, :2], link).pose
        np.testing.assert_allclose(points[:, point], poses[:, :3, 3], atol=1e-6)
    assert robot['lines'] == [[0, 1, -1], [1, 2, 0], [2, 3, 1]]
    shares = np.abs(RESULTS.effort[rows, 0]) / 50.0
    np.testing.assert_allclose(robot['shares'].reshape(F, n), shares, atol=1e-6)
    (section,) = page.indices('section', 'robot')
    used = [page.text_of(i) for i in page.indices('li') if page.inside(i, section)]
    assert used == ['shoulder–', 'elbow–']


def test_the_robot_is_at_first_where_most_of_a_limit_is_used():
    limits = motion_limits(MODEL, {'elbow': {'effort_dot': 1.0}})
    page = Page(html_report(MODEL, RESULTS, limits))
    rate = np.abs(RESULTS.effort[:, 1, 1])
    time = RESULTS.times[rate.argmax()]
    assert page.data()['worst'] == pytest.approx(time)
    (section,) = page.indices('section', 'robot')
    said = page.text_of(section)
    assert f'Torque rate of elbow, {100.0 * rate.max():.0f} % of its limit' in said
    assert f'at {time:.4f} s' in said
    unlimited = limits._replace(
        **{name: np.full(2, np.inf) for name in limits._fields if name != 'lower'},
        lower=np.full(2, -np.inf),
    )
    page = Page(html_report(MODEL, results_of(MODEL), unlimited))
    assert page.data()['worst'] == 0.0
    assert 'The worst moment' not in page.visible_text()


def test_shares_are_not_shown_where_there_are_no_limits_or_no_torques():
    bounds = motion_limits(MODEL)._replace(effort=np.array([np.inf, 50.0]))
    results = results_of(MODEL)
    effort = results.effort.copy()
    effort[:100] = np.nan
    page = Page(html_report(MODEL, replace(results, effort=effort), bounds))
    shares = page.robot()['shares'].reshape(-1, 2)
    assert np.isnan(shares[:, 0]).all()
    assert np.isnan(shares[:90, 1]).all()
    assert np.isfinite(shares[110:, 1]).all()
    assert 'shoulder–' not in page.text_of_all('li')


def test_page_says_when_by_what_and_from_which_file_it_was_written():
    page = Page(html_report(MODEL, results_of(MODEL), robot_file='/robots/<arm>.urdf'))
    assert page.mistakes == []
    today = datetime.now(timezone.utc)
    days = '|'.join(f'{today - timedelta(days=back):%Y-%m-%d}' for back in (0, 1))
    written = rf'Written on ({days}) at \d\d:\d\d UTC by hodyn_ros \d+\.\d+\.\d+\.'
    assert re.search(written + r' Robot: /robots/<arm>\.urdf\.', page.visible_text())


def test_a_position_beyond_its_limit_is_told_in_its_unit_alone():
    bounds = motion_limits(MODEL)._replace(upper=np.array([0.0035, 2.0]))
    page = Page(html_report(MODEL, results_of(MODEL), bounds))
    (_, row) = page.table('Limits that are exceeded')
    assert re.fullmatch(r'0\.\d+ rad', row[4])


def test_a_limit_on_one_side_is_checked_and_told():
    bounds = motion_limits(MODEL)
    bounds = bounds._replace(lower=np.full(2, -np.inf), upper=np.array([0.4, 2.0]))
    page = Page(html_report(MODEL, results_of(MODEL), bounds))
    (_, row) = page.table('Limits that are exceeded')
    assert row[:2] == ['Position', 'shoulder']
    rows = {row[0]: row[1:] for row in page.table('What was checked')[1:]}
    assert rows['Position'][:3] == ['✗ exceeded by 1', '2 of 2', '–']
    assert 'limits none to 0.4' in page.visible_text()


def test_sections_that_have_nothing_to_show_are_left_out(plain):
    headings = plain.text_of_all('h2')
    assert headings == ['Checks', 'Robot', 'Joints', 'Torque over its rate', 'Energy']


def test_tables_can_be_read_aloud_and_scrolled_by_keyboard(page):
    for index in page.indices('table'):
        cells = [i for i in page.indices('th') if page.inside(i, index)]
        assert {page.elements[i][1].get('scope') for i in cells} == {'col', 'row'}
        frame = page.elements[page.elements[index][2]][1]
        assert (frame['role'], frame['tabindex']) == ('region', '0')
        assert frame['aria-label']


def test_page_suits_screens_of_all_sizes_both_schemes_and_paper(page):
    (viewport,) = [
        attributes['content']
        for attributes in page.attributes('meta')
        if attributes.get('name') == 'viewport'
    ]
    assert 'width=device-width' in viewport
    (style,) = page.text_of_all('style')
    for query in (
        'prefers-color-scheme: dark',
        'max-width: 600px',
        '@media print',
        '@page',
    ):
        assert query in style
    assert page.attributes('html') == [{'lang': 'en'}]


def test_names_and_remarks_are_harmless():
    xml = robots.robot(
        '<link name="base"/>',
        robots.link('upper'),
        robots.joint('QUIRK', 'base', 'upper'),
        name='QUIRK',
    )
    model = replace(
        RobotModel.from_urdf(xml),
        name=NASTY,
        joint_names=(NASTY,),
        body_names=(NASTY,),
        base_link=NASTY,
        warnings=(NASTY,),
    )
    actuators = Actuators(model, {NASTY: SeriesElastic(80.0, 0.2)})
    results = results_of(model, actuators, name=NASTY, remarks=(NASTY,))
    violation = Violation(NASTY, NASTY, 3.0, 2.0, 5)
    html = html_report(
        model, results, actuators=actuators, remarks=[NASTY], violations=[violation]
    )
    page = Page(html)
    assert page.mistakes == []
    assert page.attributes('img') == []
    # The data, the library and what draws the pictures.
    assert len(page.attributes('script')) == 3
    assert [title for title in page.text_of_all('title')] == [f'{NASTY}: {NASTY}']
    # The text itself is shown as it is.
    assert page.visible_text().count(NASTY) > 10
    assert not any(
        name.startswith('on') for _, attributes, _ in page.elements for name in attributes
    )
    # Plotly reads some HTML in its texts, so names are not among them.
    (data,) = [
        page.text_of(i) for i in page.indices('script') if page.elements[i][1].get('id')
    ]
    assert 'alert' not in data
    assert '<' not in data


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
    links = [attributes['href'] for attributes in compared.attributes('a')]
    assert {'#compared', '#identified', '#compared-1', '#compared-2'} <= set(links)
    assert {link[1:] for link in links} <= {a.get('id') for _, a, _ in compared.elements}
    verdicts = compared.text_of_all('p', 'verdict')
    assert verdicts[0] == (
        'The difference is 12 % of the measured efforts; a payload of 1.5 kg at tool would '
        'explain 75 % of it.'
    )
    assert 'Efforts were clipped.' in compared.text_of_all('li')


def test_differences_are_told_by_joint_by_frequency_and_by_what_explains_them(compared):
    head, shoulder, elbow = compared.table('RMS of torques')
    assert head == [
        'Joint',
        'Measured',
        'Difference',
        '0 to 0.3 Hz',
        '0.3 to 1 Hz',
        '1 to 3 Hz',
        'above 3 Hz',
        'Scale factor',
        'Correlation',
    ]
    assert shoulder == [
        'shoulder',
        '1',
        '0.125',
        '0.01',
        '0.03',
        '0.05',
        '0.07',
        '1.25',
        '0.975',
    ]
    assert elbow[:4] == ['elbow', '2', '0.25', '0.02']
    head, *rows = compared.table('Part of the squared difference')
    assert head == ['', 'All joints', 'shoulder', 'elbow']
    assert rows == [
        ['a payload of 1.5 kg at tool', '75 %', '50 %', '90 %'],
        ['friction and offsets', '25 %', '−50 %', '−90 %'],
        ['all of these together', '100 %', '–', '–'],
    ]


def test_pictures_of_measured_efforts_share_the_time_of_all_others(compared):
    panels = compared.pictures()
    both, difference = panels[2:4]  # of the elbow
    measured, computed = both['curves']
    assert (measured['name'], computed['name']) == ('measured', 'computed')
    (rest,) = difference['curves']
    found = comparison_of(MODEL)
    first, second = found.stretches
    # A gap, and a sample that is not used.
    assert np.isnan(rest['y'][len(first.times) - 1 :][:2]).all()
    expected = np.concatenate([first.measured[:-1, 1], second.measured[:, 1]])
    known = np.isfinite(measured['y'])
    np.testing.assert_allclose(measured['y'][known], expected, atol=1e-5)
    known = np.isfinite(rest['y'])
    times = np.concatenate([first.times[:-1], second.times])
    np.testing.assert_allclose(rest['x'][known], times, atol=1e-5)
    np.testing.assert_allclose(rest['y'][known], np.sin(2.0 * np.pi * times), atol=1e-5)
    shown = np.array([panel['xRange'] for panel in panels if not panel['portrait']])
    np.testing.assert_allclose(shown, np.tile([0.0, 6.98], (len(shown), 1)), atol=1e-9)
    # At steps of 0.02 s the largest sine is that of 0.24 turns.
    assert 'RMS 0.25 N m; at most 0.998 N m' in compared.visible_text()


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


def test_recordings_one_after_the_other_do_not_overlap():
    found = comparison_of(MODEL)
    first, second = found.stretches
    another = [first._replace(name='b.csv'), second._replace(name='b.csv')]
    found = replace(found, stretches=(first, second, *another))
    starts = [times[0] for times in found.times]
    np.testing.assert_allclose(starts, [0.0, 5.0, 7.98, 12.98])
    assert found.name == 'swing.csv, b.csv'
    results = found.results(MODEL)
    assert np.all(np.diff(results.times) > 0.0) and len(results) == 600
    page = Page(html_report(MODEL, results, comparison=found))
    assert page.pictures()[0]['xRange'] == pytest.approx([0.0, 14.96])


def test_joints_whose_efforts_were_not_measured_have_no_picture_of_them():
    found = comparison_of(MODEL)
    stretches = [
        item._replace(is_used=item.is_used & [True, False]) for item in found.stretches
    ]
    found = replace(found, stretches=tuple(stretches))
    page = Page(html_report(MODEL, found.results(MODEL), comparison=found))
    titles = page.text_of_all('figcaption')
    assert sum(title.startswith('Torque, measured') for title in titles) == 1
    assert sum(title.startswith('Difference') for title in titles) == 1


def test_names_in_comparisons_and_identifications_are_harmless():
    model = replace(MODEL, joint_names=(NASTY, 'elbow'))
    told = [Explanation(f'{NASTY} kg', np.ones(2), 1.0)] * 2
    found = replace(comparison_of(model, NASTY, told), remarks=(NASTY,))
    identified = identification_of(MODEL, [NASTY, NASTY], NASTY, NASTY, NASTY)
    page = Page(
        html_report(
            model, found.results(model), comparison=found, identification=identified
        )
    )
    assert page.mistakes == []
    assert page.attributes('img') == []
    assert len(page.attributes('script')) == 3
    assert page.visible_text().count(NASTY) > 15
    (data,) = [
        page.text_of(i) for i in page.indices('script') if page.elements[i][1].get('id')
    ]
    assert 'alert' not in data and '<' not in data


def test_title_can_be_chosen_and_is_harmless():
    page = Page(html_report(MODEL, results_of(MODEL), title='<b>Test</b>'))
    assert page.text_of_all('title') == page.text_of_all('h1') == ['<b>Test</b>']


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


def test_short_motions_are_not_said_to_be_thinned_out(plain):
    assert 'drawn with at most' not in plain.visible_text()


def test_robots_with_many_joints_stay_small():
    n = 60
    xml = robots.robot(
        '<link name="l0"/>',
        *(robots.link(f'l{i}') for i in range(1, n + 1)),
        *(robots.joint(f'j{i}', f'l{i - 1}', f'l{i}') for i in range(1, n + 1)),
    )
    model = RobotModel.from_urdf(xml)
    actuators = Actuators(
        model, {name: SeriesElastic(1e6, 0.2) for name in model.joint_names}
    )
    results = results_of(model, actuators, N=5000, amplitude=1e-4)
    assert len(html_report(model, results).encode()) < 8e6


def test_limits_of_motors_need_the_actuators_they_belong_to():
    bounds = motor_limits(ACTUATORS, {'elbow': {'motor_velocity': 0.9}})
    with pytest.raises(ActuatorError, match='without the actuators'):
        html_report(MODEL, RESULTS, motor_limits=bounds)
    found = find_motor_violations(ACTUATORS, bounds, RESULTS.motors)
    assert found
    page = Page(html_report(MODEL, RESULTS, motor_limits=bounds, violations=found))
    assert page.table('Limits that are exceeded')[1][0] == 'Motor velocity'
    renamed = replace(RESULTS, motor_names=('a', 'b'))
    with pytest.raises(ActuatorError, match='a, b'):
        html_report(MODEL, renamed, actuators=ACTUATORS, motor_limits=bounds)


def test_violations_of_another_motion_are_refused():
    with pytest.raises(MotionError, match='sample 201, but the results have 201'):
        html_report(
            MODEL, RESULTS, violations=[Violation('effort', 'elbow', 60.0, 50.0, 201)]
        )


def test_results_without_efforts_are_refused():
    bare = results_of(MODEL, K=3)
    with pytest.raises(MotionError, match='0 of the effort'):
        html_report(MODEL, replace(bare, effort=bare.effort[:, :0]))


def test_without_plotly_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, 'plotly.offline', None)
    with pytest.raises(ResourceError, match=r'pip install hodyn_ros\[report\]'):
        html_report(MODEL, RESULTS)


def test_parts_of_the_page_are_installed(monkeypatch):
    captured = {}
    setuptools = SimpleNamespace(setup=captured.update, find_packages=lambda **_: [])
    monkeypatch.setitem(sys.modules, 'setuptools', setuptools)
    monkeypatch.chdir(ROOT)
    runpy.run_path('setup.py')
    patterns = captured['package_data']['hodyn_ros']
    parts = [
        path for path in (ROOT / 'hodyn_ros/plotting/assets').iterdir() if path.is_file()
    ]
    assert {path.suffix for path in parts} == {'.html', '.css', '.js'}
    for path in parts:
        assert any(path.match(f'hodyn_ros/{pattern}') for pattern in patterns), path


def test_nothing_optional_is_imported_before_it_is_used():
    code = (
        'import sys, hodyn_ros.plotting; '
        'print([m for m in ("matplotlib", "plotly") if m in sys.modules])'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == '[]'
