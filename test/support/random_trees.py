"""Seeded random robots as URDF text, and random motions and wrenches for them.

The robots are meant to be nasty in every way that URDF allows: branches, all joint types of a
fixed-base tree, several mimics of one joint, axes that are neither aligned nor normalised,
inertial frames turned and shifted against the link frame, massless links, omitted elements with
defaults, and files in which neither the order of the elements nor the names follow the tree.
"""

from typing import NamedTuple

import numpy as np

from hodyn_ros import Inertia, RobotModel
from hodyn_ros.lie import se3

MOVING_TYPES = ('revolute', 'continuous', 'prismatic')
EXPRESSIONS = ('body', 'spatial', 'hybrid')
SIGNS = ('on_environment', 'on_robot')


class RandomRobot(NamedTuple):
    """A URDF and the names that a test needs to address its parts."""

    xml: str
    independent_joints: tuple[str, ...]
    mimic_joints: tuple[str, ...]
    links: tuple[str, ...]  # the root link first
    leaves: tuple[str, ...]


class WrenchCase(NamedTuple):
    """A wrench on a link; the fields are the arguments of the wrench type of the package."""

    link: str
    # (..., K-2, 6), moment first: coordinates and their time derivatives.
    values: np.ndarray
    expressed_in: str = 'body'
    acting: str = 'on_environment'


def random_robot(seed, n_moving=None, mimic_probability=0.25, fixed_probability=0.4):
    """Make a random tree with n_moving moving joints (mimic joints included; 1 to 12 if None)."""
    rng = np.random.default_rng(seed)
    n_moving = int(rng.integers(1, 13)) if n_moving is None else n_moving
    link_numbers = iter(rng.permutation(100))
    joint_numbers = iter(rng.permutation(100))
    branching = rng.uniform(0.0, 0.6)

    root = f'link_{next(link_numbers)}'
    links = [root]
    parents = set()
    elements = [_link(rng, root, massless=rng.random() < 0.5)]
    independent, mimics = [], []

    def grow(joint_type, massless):
        parent = links[rng.integers(len(links))] if rng.random() < branching else links[-1]
        child = f'link_{next(link_numbers)}'
        name = f'joint_{next(joint_numbers)}'
        mimicked = None
        if joint_type != 'fixed':
            if independent and rng.random() < mimic_probability:
                # Also a mimic joint may be mimicked.
                moving_joints = independent + mimics
                mimicked = moving_joints[rng.integers(len(moving_joints))]
                mimics.append(name)
            else:
                independent.append(name)
        elements.append(_link(rng, child, massless))
        elements.append(_joint(rng, name, joint_type, parent, child, mimicked))
        parents.add(parent)
        links.append(child)

    for moving in range(n_moving):
        while rng.random() < fixed_probability:
            grow('fixed', massless=rng.random() < 0.5)
        # A massless link may move, as inside a universal joint, but something should have mass.
        last = moving == n_moving - 1
        grow(str(rng.choice(MOVING_TYPES)), massless=not last and rng.random() < 0.15)
    while rng.random() < fixed_probability:
        grow('fixed', massless=rng.random() < 0.5)

    rng.shuffle(elements)
    return RandomRobot(
        xml=f'<robot name="random_{seed}">\n' + '\n'.join(elements) + '\n</robot>\n',
        independent_joints=tuple(independent),
        mimic_joints=tuple(mimics),
        links=tuple(links),
        leaves=tuple(link for link in links if link not in parents),
    )


def random_motion(seed, n, K, shape=()):
    """Positions within a turn and derivatives of order one, shape (*shape, K, n)."""
    rng = np.random.default_rng(seed)
    motion = rng.uniform(-1.0, 1.0, (*shape, K, n))
    motion[..., 0, :] *= np.pi
    return motion


def random_wrenches(seed, links, K, shape=()):
    """Six wrenches, one for each expression and sign, on the given links in turn."""
    rng = np.random.default_rng(seed)
    cases = [(expression, sign) for expression in EXPRESSIONS for sign in SIGNS]
    first = rng.integers(len(links))
    return [
        WrenchCase(
            link=links[(first + i) % len(links)],
            values=10.0 * rng.standard_normal((*shape, K - 2, 6)),
            expressed_in=expression,
            acting=sign,
        )
        for i, (expression, sign) in enumerate(cases)
    ]


def random_gravity(seed):
    """Acceleration of gravity in a random direction: a robot on a slope, a wall or a ceiling."""
    direction = np.random.default_rng(seed).standard_normal(3)
    return 9.81 * direction / np.linalg.norm(direction)


def _numbers(values):
    # repr keeps every bit, so all readers of the text start from the same numbers.
    return ' '.join(repr(float(value)) for value in values)


def _origin(rng, reach):
    if rng.random() < 0.1:
        return ''
    xyz, rpy = rng.uniform(-reach, reach, 3), rng.uniform(-np.pi, np.pi, 3)
    rotated, shifted = rng.random() < 0.9, rng.random() < 0.9
    return (
        '<origin'
        + (f' xyz="{_numbers(xyz)}"' if shifted else '')
        + (f' rpy="{_numbers(rpy)}"' if rotated else '')
        + '/>'
    )


def _link(rng, name, massless):
    if massless:
        return f'<link name="{name}"/>'
    mass = rng.uniform(0.1, 5.0)
    # Second moments of a mass distribution, which makes the inertia a physical one: positive
    # definite, and each principal moment smaller than the sum of the other two.
    spread = rng.standard_normal((3, 3)) * rng.uniform(0.02, 0.2)
    second_moments = mass * (spread @ spread.T + 1e-4 * np.eye(3))
    inertia = np.trace(second_moments) * np.eye(3) - second_moments
    entries = ' '.join(
        f'i{"xyz"[i]}{"xyz"[j]}="{_numbers([inertia[i, j]])}"'
        for i in range(3)
        for j in range(i, 3)
    )
    return (
        f'<link name="{name}"><inertial>{_origin(rng, 0.2)}'
        f'<mass value="{_numbers([mass])}"/><inertia {entries}/></inertial></link>'
    )


def _joint(rng, name, joint_type, parent, child, mimicked):
    parts = [f'<parent link="{parent}"/>', f'<child link="{child}"/>', _origin(rng, 0.5)]
    if joint_type != 'fixed':
        kind = rng.random()
        if kind < 0.7:
            axis = rng.standard_normal(3)
            axis *= rng.uniform(0.1, 10.0) / np.linalg.norm(axis)
            parts.append(f'<axis xyz="{_numbers(axis)}"/>')
        elif kind < 0.9:
            axis = rng.choice([-1.0, 1.0]) * np.eye(3)[rng.integers(3)]
            parts.append(f'<axis xyz="{_numbers(axis)}"/>')
        # Otherwise the axis is omitted, which means x.
        parts.append('<limit lower="-10" upper="10" effort="100" velocity="10"/>')
    if mimicked is not None:
        multiplier = f' multiplier="{_numbers([rng.uniform(-2.0, 2.0)])}"'
        offset = f' offset="{_numbers([rng.uniform(-1.0, 1.0)])}"'
        parts.append(
            f'<mimic joint="{mimicked}"'
            + (multiplier if rng.random() < 0.8 else '')
            + (offset if rng.random() < 0.8 else '')
            + '/>'
        )
    rng.shuffle(parts)
    return f'<joint name="{name}" type="{joint_type}">{"".join(parts)}</joint>'


def random_poses(rng, n):
    return se3.exp(rng.normal(size=(n, 6)) * [1.5, 1.5, 1.5, 0.5, 0.5, 0.5])


def random_screws(rng, n):
    """Revolute, prismatic and helical screws in turn."""
    e = rng.normal(size=(n, 3))
    e /= np.linalg.norm(e, axis=1)[:, None]
    X = np.concatenate([e, np.cross(rng.uniform(-0.5, 0.5, (n, 3)), e)], axis=1)
    kinds = rng.permutation(np.arange(n) % 3)
    X[kinds == 1] = np.concatenate([np.zeros((n, 3)), e], axis=1)[kinds == 1]
    X[kinds == 2, 3:] += rng.uniform(0.05, 0.3, n)[kinds == 2, None] * e[kinds == 2]
    return X


def random_inertias(rng, n):
    spread = rng.normal(size=(n, 3, 3)) * 0.1
    moments = spread @ np.swapaxes(spread, 1, 2)
    tensors = np.trace(moments, axis1=1, axis2=2)[:, None, None] * np.eye(3) - moments
    return [
        Inertia(mass, com, tensor)
        for mass, com, tensor in zip(
            rng.uniform(0.2, 4.0, n), rng.uniform(-0.2, 0.2, (n, 3)), tensors
        )
    ]


def random_screw_model(seed, n=7):
    rng = np.random.default_rng(seed)
    parents = [int(rng.integers(-1, i)) for i in range(n)]
    return RobotModel.from_body_screws(
        random_screws(rng, n),
        random_poses(rng, n),
        parents=parents,
        inertias=random_inertias(rng, n),
        gravity=random_gravity(seed),
        tool=random_poses(rng, 1)[0],
    )
