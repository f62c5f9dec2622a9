"""Two independent oracles for inverse dynamics with time derivatives, from URDF text.

`taylor_rnea`: truncated power series in time through Newton's and Euler's laws for 3-vectors in
base axes. No recursion over bodies, no screws, no formula for any derivative: positions are
written as power series, and the series are differentiated term by term. Exact in any order.

`PinOracle`: Pinocchio. Efforts from its RNEA, their first derivative by the chain rule from its
analytical derivatives. On random trees the two agree to 1e-14.

Neither shares code with hodyn_ros, and they share nothing with each other but the few lines that
read a URDF's mimic elements. Wrenches are (moment, force), as the robot exerts them on its
environment unless they say `on_robot`.
"""

from math import factorial
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

# --- URDF, read as plainly as possible ----------------------------------------------------------


class Joint(NamedTuple):
    """A joint of a URDF, with defaults filled in and the axis normalised."""

    name: str
    type: str
    parent: str
    child: str
    translation: np.ndarray
    rotation: np.ndarray
    axis: np.ndarray
    mimic: tuple[str, float, float] | None  # q = multiplier * q_of_name + offset


class Inertial(NamedTuple):
    """Mass, centre of mass in the link frame, inertia about the latter in link axes."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray


class Tree(NamedTuple):
    """Joints of a URDF sorted from the root link outwards, and inertias of its links."""

    root: str
    joints: list[Joint]
    inertials: dict[str, Inertial]

    @property
    def independent(self):
        """Names of the joints that move and do not mimic another one."""
        return [j.name for j in self.joints if j.type != 'fixed' and j.mimic is None]


# Extended precision, where the machine has it, takes the oracle's own rounding out of the picture.
REAL = np.longdouble


def _vector(element, attribute, default):
    text = default if element is None else element.get(attribute, default)
    return np.array([float(number) for number in text.split()], dtype=REAL)


def _rotation(rpy):
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]], dtype=REAL)
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]], dtype=REAL)
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]], dtype=REAL)
    return about_z @ about_y @ about_x


def read_urdf(xml):
    """Read the mechanics of a URDF into a Tree."""
    robot = ElementTree.fromstring(xml)
    inertials = {}
    for link in robot.findall('link'):
        inertial = link.find('inertial')
        if inertial is not None:
            origin = inertial.find('origin')
            R = _rotation(_vector(origin, 'rpy', '0 0 0'))
            entry = {
                key: float(value) for key, value in inertial.find('inertia').attrib.items()
            }
            tensor = np.array(
                [
                    [entry['ixx'], entry['ixy'], entry['ixz']],
                    [entry['ixy'], entry['iyy'], entry['iyz']],
                    [entry['ixz'], entry['iyz'], entry['izz']],
                ],
                dtype=REAL,
            )
            inertials[link.get('name')] = Inertial(
                mass=float(inertial.find('mass').get('value')),
                com=_vector(origin, 'xyz', '0 0 0'),
                inertia=R @ tensor @ R.T,
            )

    waiting = []
    for joint in robot.findall('joint'):
        origin, mimic = joint.find('origin'), joint.find('mimic')
        axis = _vector(joint.find('axis'), 'xyz', '1 0 0')
        waiting.append(
            Joint(
                name=joint.get('name'),
                type=joint.get('type'),
                parent=joint.find('parent').get('link'),
                child=joint.find('child').get('link'),
                translation=_vector(origin, 'xyz', '0 0 0'),
                rotation=_rotation(_vector(origin, 'rpy', '0 0 0')),
                axis=axis / np.sqrt((axis * axis).sum()),
                mimic=None
                if mimic is None
                else (
                    mimic.get('joint'),
                    float(mimic.get('multiplier', 1.0)),
                    float(mimic.get('offset', 0.0)),
                ),
            )
        )
    children = {joint.child for joint in waiting}
    (root,) = [
        link.get('name')
        for link in robot.findall('link')
        if link.get('name') not in children
    ]
    reached, joints = {root}, []
    while waiting:
        ready = [joint for joint in waiting if joint.parent in reached]
        joints += ready
        reached |= {joint.child for joint in ready}
        waiting = [joint for joint in waiting if joint.child not in reached]
    return Tree(root, joints, inertials)


def mimic_of(joint, joints):
    """(independent joint, multiplier, offset) of a moving joint, through mimics of mimics."""
    by_name = {other.name: other for other in joints}
    name, multiplier, offset = joint.name, 1.0, 0.0
    while by_name[name].mimic is not None:
        name, factor, shift = by_name[name].mimic
        multiplier, offset = multiplier * factor, multiplier * shift + offset
    return name, multiplier, offset


# --- Power series in time -----------------------------------------------------------------------
# A series is an array whose first axis counts the powers of t; then come batch axes, then the
# vector or matrix. Coefficients are those of t^k, without the factorial of a derivative.


def _constant(value, like):
    series = np.zeros((len(like), *np.shape(value)), dtype=REAL)
    series[0] = value
    # One axis of length 1 for each batch axis of the other series.
    return series.reshape(len(like), *[1] * (like.ndim - 1), *np.shape(value))


def product(a, b, operation=np.matmul):
    """Series of operation(a(t), b(t)) for a bilinear operation, as long as the shorter series."""
    return np.stack(
        [
            sum(operation(a[i], b[k - i]) for i in range(k + 1))
            for k in range(min(len(a), len(b)))
        ]
    )


def apply(matrix, vector):
    return product(matrix, vector[..., None])[..., 0]


def cross(a, b):
    return apply(cross_matrix(a), b)


def dot(a, b):
    return product(a[..., None, :], b[..., None])[..., 0, 0]


def rate(series):
    powers = np.arange(1, len(series), dtype=REAL)
    return series[1:] * powers.reshape(-1, *[1] * (series.ndim - 1))


def sine_and_cosine(angle):
    """Series of sin and cos of a series, from s' = c angle', c' = -s angle'."""
    speed = rate(angle)
    sine, cosine = np.empty_like(angle), np.empty_like(angle)
    sine[0], cosine[0] = np.sin(angle[0]), np.cos(angle[0])
    for k in range(1, len(angle)):
        sine[k] = sum(cosine[i] * speed[k - 1 - i] for i in range(k)) / k
        cosine[k] = sum(-sine[i] * speed[k - 1 - i] for i in range(k)) / k
    return sine, cosine


def cross_matrix(vector):
    x, y, z = np.moveaxis(vector, -1, 0)
    o = np.zeros_like(x)
    return np.stack([o, -z, y, z, o, -x, -y, x, o], axis=-1).reshape(*x.shape, 3, 3)


def _turn(axis, angle):
    """Series of the rotation matrix about a constant unit axis (Rodrigues)."""
    sine, cosine = sine_and_cosine(angle)
    K = cross_matrix(axis)
    R = sine[..., None, None] * K - cosine[..., None, None] * (K @ K)
    R[0] += np.eye(3) + K @ K
    return R


# --- Oracle 1: power series through plain mechanics ---------------------------------------------


def taylor_terms(xml, joint_names, gravity, motion, wrenches=()):
    """Efforts and their derivatives, split into contributions that add up to them.

    Parameters
    ----------
    xml : str
    joint_names : sequence of str
        The independent joints in the order of the motion's last axis.
    gravity : array-like, shape (3,)
    motion : array-like, shape (..., K, n)
    wrenches : sequence of WrenchCase
        Leading axes of their values broadcast with those of the motion.

    Returns
    -------
    ndarray, shape (2 + number of wrenches, ..., K-2, n)
        Of inertia, of gravity, and of each wrench.
    """
    tree = read_urdf(xml)
    if sorted(tree.independent) != sorted(joint_names):
        raise ValueError(
            f'the independent joints are {tree.independent}, not {joint_names}'
        )
    shape = np.broadcast_shapes(
        *(np.shape(a)[:-2] for a in (motion, *(w.values for w in wrenches)))
    )
    q = _series(motion, shape)
    K = len(q)

    # Pose of each link and, for each moving joint, axis and a point on it, all in base axes.
    angle_like = q[..., 0]
    position = {tree.root: _constant(np.zeros(3), angle_like)}
    rotation = {tree.root: _constant(np.eye(3), angle_like)}
    axis = {}
    for joint in tree.joints:
        R = rotation[joint.parent] @ joint.rotation
        p = position[joint.parent] + rotation[joint.parent] @ joint.translation
        if joint.type != 'fixed':
            independent, multiplier, offset = mimic_of(joint, tree.joints)
            value = multiplier * q[..., joint_names.index(independent)]
            value[0] += offset
            axis[joint.name] = R @ joint.axis
            if joint.type == 'prismatic':
                p = p + product(axis[joint.name], value[..., None], np.multiply)
            else:
                R = product(R, _turn(joint.axis, value))
        position[joint.child], rotation[joint.child] = p, R

    # What each link must be given so that it moves as it does: a force and a moment about the
    # base origin, both in base axes, from inertia, gravity and each wrench.
    loads = {
        link: _link_loads(tree, link, position, rotation, gravity, K) for link in position
    }
    for number, wrench in enumerate(wrenches):
        values = _series(wrench.values, shape)
        moment, force = values[..., :3], values[..., 3:]
        p, R = position[wrench.link], rotation[wrench.link]
        if wrench.expressed_in == 'body':
            moment, force = apply(R, moment), apply(R, force)
        if wrench.expressed_in in ('body', 'hybrid'):
            moment = moment + cross(p, force)
        elif wrench.expressed_in != 'spatial':
            raise ValueError(f'unknown expression {wrench.expressed_in!r}')
        sign = {'on_environment': 1, 'on_robot': -1}[wrench.acting]
        loads[wrench.link].append((2 + number, sign * moment, sign * force))

    # A joint carries everything behind it; its effort is the component along its axis.
    efforts = np.zeros((2 + len(wrenches), K - 2, *shape, len(joint_names)), dtype=REAL)
    for joint in tree.joints:
        if joint.type == 'fixed':
            continue
        independent, multiplier, _ = mimic_of(joint, tree.joints)
        column = joint_names.index(independent)
        for link in _links_behind(tree, joint):
            for term, moment, force in loads[link]:
                if joint.type == 'prismatic':
                    effort = dot(axis[joint.name], force)
                else:
                    # Moment about a point on the joint axis.
                    shifted = moment - cross(position[joint.child], force)
                    effort = dot(axis[joint.name], shifted)
                efforts[term, ..., column] += multiplier * effort
    derivatives = np.moveaxis(efforts, 1, -2) * factorials(K - 2)[:, None]
    return derivatives.astype(float)


def taylor_rnea(xml, joint_names, gravity, motion, wrenches=()):
    """Efforts and their time derivatives of any order, shape (..., K-2, n); see taylor_terms."""
    return taylor_terms(xml, joint_names, gravity, motion, wrenches).sum(axis=0)


def _series(derivatives, shape):
    """Coefficients of t^k on the first axis, from derivatives on the second to last axis."""
    values = np.asarray(derivatives, dtype=REAL)
    values = np.broadcast_to(values, (*shape, *values.shape[-2:]))
    return np.moveaxis(values / factorials(values.shape[-2])[:, None], -2, 0)


def factorials(count):
    return np.array([float(factorial(k)) for k in range(count)], dtype=REAL)


def _link_loads(tree, link, position, rotation, gravity, K):
    inertial = tree.inertials.get(link)
    if inertial is None or link == tree.root:
        return []
    R = rotation[link]
    com = position[link] + R @ inertial.com
    R_transposed = np.swapaxes(R, -1, -2)

    force = inertial.mass * rate(rate(com))
    spin_matrix = product(rate(R), R_transposed)
    spin = np.stack(
        [spin_matrix[..., 2, 1], spin_matrix[..., 0, 2], spin_matrix[..., 1, 0]], -1
    )
    inertia = product(R @ inertial.inertia, R_transposed)
    angular_momentum = apply(inertia, spin)
    moment = rate(angular_momentum) + cross(com, force)

    weight = _constant(
        -inertial.mass * np.asarray(gravity, dtype=REAL), com[: K - 2, ..., 0]
    )
    weight_moment = cross(com, weight)
    return [(0, moment, force), (1, weight_moment, weight)]


def _links_behind(tree, joint):
    behind = [joint.child]
    for other in tree.joints:  # sorted from the root outwards
        if other.parent in behind:
            behind.append(other.child)
    return behind


# --- Oracle 2: Pinocchio ------------------------------------------------------------------------


class PinOracle:
    """Inverse dynamics by Pinocchio for a fixed base and one sample, mimic joints reduced here.

    Pinocchio reads every mimic joint as an independent one (`mimic=False`). With the constraint
    q_full = G q + b the efforts of the independent joints are G^T Q_full.
    """

    def __init__(self, xml, joint_names, gravity):
        import pinocchio

        self.pin = pinocchio
        self.model = pinocchio.buildModelFromXML(xml, mimic=False)
        self.model.gravity.linear = np.array(gravity, dtype=float)
        self.data = self.model.createData()

        joints = read_urdf(xml).joints
        moving = {joint.name: joint for joint in joints if joint.type != 'fixed'}
        if set(moving) != set(self.model.names) - {'universe'}:
            raise ValueError('Pinocchio and the URDF reader see different joints')
        self.G = np.zeros((self.model.nv, len(joint_names)))
        self.b = np.zeros(self.model.nv)
        for name, joint in moving.items():
            row = self.model.joints[self.model.getJointId(name)].idx_v
            independent, multiplier, offset = mimic_of(joint, joints)
            self.G[row, list(joint_names).index(independent)] = multiplier
            self.b[row] = offset

    def full(self, motion):
        full = [self.G @ np.asarray(row, dtype=float) for row in motion]
        full[0] = full[0] + self.b
        return full

    def configuration(self, q):
        """Pinocchio's configuration vector, in which a continuous joint is (cos, sin)."""
        configuration = np.empty(self.model.nq)
        for joint in list(self.model.joints)[1:]:
            value = q[joint.idx_v]
            configuration[joint.idx_q : joint.idx_q + joint.nq] = (
                value if joint.nq == 1 else (np.cos(value), np.sin(value))
            )
        return configuration

    def effort(self, motion):
        """Q at one instant, shape (n,)."""
        q, qd, q2d = self.full(motion[:3])
        at = self.configuration(q)
        return self.G.T @ self.pin.rnea(self.model, self.data, at, qd, q2d).copy()

    def effort_rate(self, motion):
        """Exact dQ/dt by the chain rule, shape (n,)."""
        q, qd, q2d, q3d = self.full(motion[:4])
        found = self.pin.computeRNEADerivatives(
            self.model, self.data, self.configuration(q), qd, q2d
        )
        dQ_dq, dQ_dv, M = (np.array(matrix) for matrix in found)
        # Only the upper triangle of Pinocchio's mass matrix is filled in by some versions.
        M = np.triu(M) + np.triu(M, 1).T
        return self.G.T @ (dQ_dq @ qd + dQ_dv @ q2d + M @ q3d)
