"""Sections of the report that hold text and tables: verdict, checks, remarks and the robot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone

import numpy as np

from hodyn_ros.analysis.limits import MotionLimits, Violation
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.plotting.checks import Check
from hodyn_ros.plotting.markup import Markup, element, joined, table
from hodyn_ros.plotting.panels import percent
from hodyn_ros.plotting.quantities import limited_quantity, number
from hodyn_ros.plotting.source import Source
from hodyn_ros.resources import package_version

NONE = '–'


def header(
    source: Source,
    title: str,
    checks: Sequence[Check],
    violations: Sequence[Violation],
    robot_file: str | None,
) -> Markup:
    """Title, what was computed, the verdict, and links to the sections."""
    duration = float(source.times[-1] - source.times[0])
    n = len(source.times)
    facts = (
        f'{source.model.n_joints} joints, {n} sample{"s" if n > 1 else ""} in '
        f'{number(duration, 6)} s; {source.motion.shape[1]} orders of the motion and '
        f'{source.effort.shape[1]} of the effort.'
    )
    if source.start:
        instant = datetime.fromtimestamp(source.start / 1e9, timezone.utc)
        facts += f' Times count from {instant:%Y-%m-%d %H:%M:%S} UTC.'
    now = datetime.now(timezone.utc)
    origin = f'Written on {now:%Y-%m-%d at %H:%M} UTC by hodyn_ros {package_version()}.'
    if robot_file:
        origin += f' Robot: {robot_file}.'
    return joined(
        [
            element('h1', title),
            element('p', facts, class_='quiet'),
            element('p', origin, class_='quiet'),
            verdict(checks, violations, source.has_jumps),
            _links(source),
        ],
        '\n',
    )


def verdict(
    checks: Sequence[Check], violations: Sequence[Violation], has_jumps: bool = False
) -> Markup:
    """One sentence on all limits."""
    if violations:
        n = len(violations)
        many = f'{n} limits are' if n > 1 else '1 limit is'
        return element('p', f'✗ {many} exceeded.', class_='verdict bad')
    if has_jumps:
        sentence = '✗ The torques jump at waypoints, so their rate and the jerk have no bound.'
        return element('p', sentence, class_='verdict bad')
    known = sum(check.n_limited for check in checks)
    checked = sum(check.n_complete for check in checks)
    if not known:
        sentence = 'No limits are known, so nothing was checked.'
        return element('p', sentence, class_='verdict')
    if checked < known:
        sentence = (
            f'{checked} limits are kept; {known - checked} could not be checked at all samples, '
            'because the results do not hold what they limit.'
        )
        return element('p', sentence, class_='verdict')
    return element('p', f'✓ All {known} known limits are kept.', class_='verdict good')


def _links(source: Source) -> Markup:
    places = [('checks', 'Checks'), ('robot', 'Robot')]
    places += [('motion', 'Robot in motion'), ('joints', 'Joints')]
    if source.effort.shape[1] > 1:
        places.append(('portraits', 'Torque over its rate'))
    if source.motors is not None and source.motor_names:
        places.append(('motors', 'Motors'))
    places.append(('energy', 'Energy'))
    joints = [(f'joint-{i + 1}', name) for i, name in enumerate(source.model.joint_names)]
    lists = [
        element(
            'ul', *(element('li', element('a', name, href=f'#{place}')) for place, name in links)
        )
        for links in (places, joints)
    ]
    return element('nav', *lists, aria_label='Sections and joints')


def checks_section(
    source: Source, checks: Sequence[Check], violations: Sequence[Violation]
) -> Iterator[Markup]:
    """Say what exceeds its limit, what was checked, and how much of every limit is used."""
    yield element('h2', 'Checks', id='checks')
    tables = [_violation_table(source, violations)] if violations else []
    tables.append(_check_table(checks, violations))
    for of_motors, caption in ((False, 'joints'), (True, 'motors')):
        found = [check for check in checks if check.of_motors == of_motors and check.is_checked]
        if found:
            title = f'Share of the limits that the {caption} use'
            tables.append(_share_table(title, caption, found))
    yield element('div', *tables, class_='tables')


def _violation_table(source: Source, violations: Sequence[Violation]) -> Markup:
    rows = []
    for violation in violations:
        is_linear = source.moves_linearly(violation.joint_name)
        quantity = limited_quantity(violation.quantity, is_linear)
        excess = abs(violation.value - violation.limit)
        share = excess / abs(violation.limit) if violation.limit else np.inf
        by = f'{number(excess)} {quantity.unit}'
        # Relative to where the zero of a joint happens to be, an excess says nothing.
        if np.isfinite(share) and violation.quantity != 'position':
            by += f' ({percent(share)})'
        rows.append(
            [
                quantity.name,
                _link(source, violation.joint_name),
                f'{number(violation.value)} {quantity.unit}',
                f'{number(violation.limit)} {quantity.unit}',
                by,
                f'{source.times[violation.sample]:.4f} s',
                violation.sample,
            ]
        )
    head = [
        'Quantity', 'Joint or motor', 'Value', 'Limit', 'Exceeded by', 'At', 'Sample',
    ]  # fmt: skip
    return table('Limits that are exceeded, where each is exceeded most', head, rows, words=(1,))


def _check_table(checks: Sequence[Check], violations: Sequence[Violation]) -> Markup:
    rows = []
    for check in checks:
        exceeded = sum(violation.quantity == check.quantity for violation in violations)
        worst = check.worst
        if exceeded:
            state, kind = f'✗ exceeded by {exceeded}', 'bad'
        elif not check.n_known.any():
            state, kind = 'not in the results', 'quiet'
        elif not check.n_limited:
            state, kind = 'no limits known', 'quiet'
        elif check.n_complete < check.n_limited:
            least = int(check.n_known[check.is_limited].min())
            state, kind = f'kept where it is known, at {least} samples or more', 'quiet'
        else:
            state, kind = '✓ kept', 'good'
        rows.append(
            [
                check.title,
                element('td', state, class_=f'words {kind}'),
                f'{check.n_limited} of {len(check.subjects)}',
                NONE if worst is None else percent(float(check.shares[worst])),
                NONE if worst is None else check.subjects[worst],
            ]
        )
    head = ['Quantity', 'Result', 'With a limit', 'Largest share', 'Of']
    return table('What was checked, at all samples', head, rows, words=(1, 4))


def _share_table(caption: str, who: str, checks: Sequence[Check]) -> Markup:
    names = list(dict.fromkeys(name for check in checks for name in check.subjects))
    rows = []
    for name in names:
        row: list[object] = [name]
        for check in checks:
            place = check.subjects.index(name) if name in check.subjects else None
            row.append(_share(np.nan if place is None else float(check.shares[place])))
        rows.append(row)
    head = [who.rstrip('s').capitalize(), *(check.title for check in checks)]
    return table(f'{caption}; between two limits, counted from their middle', head, rows)


def _share(share: float) -> Markup:
    if np.isnan(share):
        return element('td', NONE, class_='quiet')
    # What only seems to exceed a limit, by rounding, is not a violation either.
    if share > 1.0 + 1e-6:
        return element('td', f'✗ {percent(share)}', class_='share over')
    width = f'--share: {100.0 * min(share, 1.0):.1f}%'
    return element('td', percent(share), class_='share', style=width)


def remarks_section(remarks: Sequence[str]) -> Iterator[Markup]:
    """Pass on what the caller had to say."""
    if remarks:
        yield element('h2', 'Remarks', id='remarks')
        yield element('ul', *(element('li', remark) for remark in remarks))


def robot_section(source: Source, limits: MotionLimits) -> Iterator[Markup]:
    """Summary of the robot: joints with limits, masses, warnings."""
    model = source.model
    yield element('h2', 'Robot', id='robot')
    g = ', '.join(number(component) for component in model.gravity)
    tip = f', tip link {model.tip_link}' if model.tip_link else ''
    rubbing = f' Friction in {len(model.friction)} joints.' if model.friction else ' No friction.'
    yield element(
        'p',
        f'{model.name}: base link {model.base_link}{tip}. Moving mass '
        f'{number(_masses(model).sum())} kg, gravity ({g}) m/s² in axes of the base.{rubbing}',
    )
    if model.warnings:
        yield element('p', 'Doubtful values in the description:')
        yield element('ul', *(element('li', warning) for warning in model.warnings))
    yield element('div', _joint_table(source, limits), _mass_table(model), class_='tables')


def robot_in_motion(source: Source, limits: MotionLimits) -> Markup:
    """Draw the skeleton of the robot at a time that can be chosen, with the shares of efforts."""
    first, last = source.times[[0, -1]].tolist()
    slider = element(
        'input', type='range', min=0, max=1, step='any', value=0, aria_label='Time'
    ).removesuffix('</input>')
    shares = [
        element('li', element('span', name), element('b', NONE), data_joint=joint)
        for joint, name in enumerate(source.model.joint_names)
        if np.isfinite(limits.effort[joint])
    ]
    caption = 'Drag to turn; a double click turns it back. It follows the pointer in the pictures.'
    text = 'Part of its limit that the torque or force of each joint uses' if shares else ''
    return element(
        'section',
        element('h3', 'Robot in motion'),
        element('p', caption, class_='quiet screen'),
        element(
            'div', class_='skeleton', role='img',
            aria_label=f'Skeleton of the robot from {first:.4g} s to {last:.4g} s',
        ),
        element('p', element('button', 'Play', type='button'), Markup(slider), element('output')),
        element('p', text, class_='quiet') if shares else '',
        element('ul', *shares, class_='used'),
        class_='robot', id='motion',
    )  # fmt: skip


def _joint_table(source: Source, limits: MotionLimits) -> Markup:
    model = source.model
    rows = []
    for joint, name in enumerate(model.joint_names):
        rows.append(
            [
                name,
                model.joint_types[joint],
                'm, N, s' if source.is_linear(joint) else 'rad, N m, s',
                *(_limit(column[joint]) for column in limits),
            ]
        )
    head = [
        'Joint', 'Type', 'Units', 'Lowest position', 'Highest position', 'Velocity',
        'Acceleration', 'Jerk', 'Torque or force', 'Its rate',
    ]  # fmt: skip
    return table('Joints and their limits', head, rows, words=(1, 2))


def _mass_table(model: RobotModel) -> Markup:
    masses = _masses(model)
    rows = []
    for body, name in enumerate(model.body_names):
        links = [link for link, frame in model.links.items() if frame.body == body]
        rows.append([name, ', '.join(links), number(masses[body])])
    return table('Bodies', ['Moved by joint', 'Links', 'Mass [kg]'], rows, words=(1,))


def _masses(model: RobotModel) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.asarray(model.M_body[:, 5, 5], dtype=np.float64)


def _limit(value: float) -> Markup | str:
    return number(value) if np.isfinite(value) else element('td', NONE, class_='quiet')


def _link(source: Source, name: str) -> Markup | str:
    joint = source.joint_of(name)
    return name if joint is None else element('a', name, href=f'#joint-{joint + 1}')
