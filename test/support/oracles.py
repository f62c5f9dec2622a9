"""Two independent oracles for inverse dynamics with time derivatives, from URDF text.

`taylor_rnea`: truncated power series in time through Newton's and Euler's laws for 3-vectors in
base axes. No recursion over bodies, no screws, no formula for any derivative: positions are
written as power series, and the series are differentiated term by term. Exact in any order.

`PinOracle`: Pinocchio. Efforts from its RNEA and Jacobians, their first derivative by the chain
rule from its analytical derivatives, their second derivative by interpolating the efforts along
the motion at Chebyshev nodes.

On random trees the two agree to 1e-14 in Q and its first derivative, and to 1e-10 in the second,
where the interpolation limits the comparison (relative to the largest effort of that order).
Neither shares code with hodyn_ros, and they share nothing with each other but the few lines that
read a URDF's mimic elements. Wrenches are (moment, force), as the robot exerts them on its
environment unless they say `on_robot`.
"""

from math import factorial
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.polynomial import chebyshev
from support.records import changed

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


def chain_urdf(xml, base_link, tip_link=None):
    """The URDF of a chain: base_link as root, and only the joints on the way to tip_link move.

    What is rigidly attached to a link of the chain stays; branches behind moving joints go.
    Without tip_link everything behind base_link stays.
    """
    robot = ElementTree.fromstring(xml)
    joint_above = {
        joint.find('child').get('link'): joint for joint in robot.findall('joint')
    }
    if tip_link is None:
        path = {joint.get('name') for joint in joint_above.values()}
    else:
        path, link = set(), tip_link
        while link != base_link:
            path.add(joint_above[link].get('name'))
            link = joint_above[link].find('parent').get('link')
    kept, grown = {base_link}, True
    while grown:
        grown = False
        for child, joint in joint_above.items():
            belongs = joint.get('name') in path or joint.get('type') == 'fixed'
            if belongs and child not in kept and joint.find('parent').get('link') in kept:
                kept.add(child)
                grown = True
    for joint in robot.findall('joint'):
        child, parent = joint.find('child').get('link'), joint.find('parent').get('link')
        if child not in kept or parent not in kept:
            robot.remove(joint)
    for link in robot.findall('link'):
        if link.get('name') not in kept:
            robot.remove(link)
    return ElementTree.tostring(robot, encoding='unicode')


# --- Power series in time -----------------------------------------------------------------------
# A series is an array whose first axis counts the powers of t; then come batch axes, then the
# vector or matrix. Coefficients are those of t^k, without the factorial of a derivative.


def _constant(value, like):
    series = np.zeros((len(like), *np.shape(value)), dtype=REAL)
    series[0] = value
    # One axis of length 1 for each batch axis of the other series.
    return series.reshape(len(like), *[1] * (like.ndim - 1), *np.shape(value))


def _product(operation, a, b):
    """Series of operation(a(t), b(t)) for a bilinear operation, as long as the shorter series."""
    return np.stack(
        [
            sum(operation(a[i], b[k - i]) for i in range(k + 1))
            for k in range(min(len(a), len(b)))
        ]
    )


def _apply(matrix, vector):
    return (matrix @ vector[..., None])[..., 0]


def _dot(a, b):
    return (a * b).sum(axis=-1)


def _differentiate(series):
    powers = np.arange(1, len(series), dtype=REAL)
    return series[1:] * powers.reshape(-1, *[1] * (series.ndim - 1))


def _sine_and_cosine(angle):
    """Series of sin and cos of a series, from s' = c angle', c' = -s angle'."""
    rate = _differentiate(angle)
    sine, cosine = np.empty_like(angle), np.empty_like(angle)
    sine[0], cosine[0] = np.sin(angle[0]), np.cos(angle[0])
    for k in range(1, len(angle)):
        sine[k] = sum(cosine[i] * rate[k - 1 - i] for i in range(k)) / k
        cosine[k] = -sum(sine[i] * rate[k - 1 - i] for i in range(k)) / k
    return sine, cosine


def _cross_matrix(vector):
    x, y, z = vector
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=REAL)


def _turn(axis, angle):
    """Series of the rotation matrix about a constant unit axis (Rodrigues)."""
    sine, cosine = _sine_and_cosine(angle)
    K = _cross_matrix(axis)
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
                p = p + _product(np.multiply, axis[joint.name], value[..., None])
            else:
                R = _product(np.matmul, R, _turn(joint.axis, value))
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
            moment, force = _product(_apply, R, moment), _product(_apply, R, force)
        if wrench.expressed_in in ('body', 'hybrid'):
            moment = moment + _product(np.cross, p, force)
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
                    effort = _product(_dot, axis[joint.name], force)
                else:
                    # Moment about a point on the joint axis.
                    shifted = moment - _product(np.cross, position[joint.child], force)
                    effort = _product(_dot, axis[joint.name], shifted)
                efforts[term, ..., column] += multiplier * effort
    derivatives = np.moveaxis(efforts, 1, -2) * _factorials(K - 2)[:, None]
    return derivatives.astype(float)


def taylor_rnea(xml, joint_names, gravity, motion, wrenches=()):
    """Efforts and their time derivatives of any order, shape (..., K-2, n); see taylor_terms."""
    return taylor_terms(xml, joint_names, gravity, motion, wrenches).sum(axis=0)


def _series(derivatives, shape):
    """Coefficients of t^k on the first axis, from derivatives on the second to last axis."""
    values = np.asarray(derivatives, dtype=REAL)
    values = np.broadcast_to(values, (*shape, *values.shape[-2:]))
    return np.moveaxis(values / _factorials(values.shape[-2])[:, None], -2, 0)


def _factorials(count):
    return np.array([float(factorial(k)) for k in range(count)], dtype=REAL)


def _link_loads(tree, link, position, rotation, gravity, K):
    inertial = tree.inertials.get(link)
    if inertial is None or link == tree.root:
        return []
    R = rotation[link]
    com = position[link] + R @ inertial.com
    R_transposed = np.swapaxes(R, -1, -2)

    force = inertial.mass * _differentiate(_differentiate(com))
    spin_matrix = _product(np.matmul, _differentiate(R), R_transposed)
    spin = np.stack(
        [spin_matrix[..., 2, 1], spin_matrix[..., 0, 2], spin_matrix[..., 1, 0]], -1
    )
    inertia = _product(np.matmul, R @ inertial.inertia, R_transposed)
    angular_momentum = _product(_apply, inertia, spin)
    moment = _differentiate(angular_momentum) + _product(np.cross, com, force)

    weight = _constant(
        -inertial.mass * np.asarray(gravity, dtype=REAL), com[: K - 2, ..., 0]
    )
    weight_moment = _product(np.cross, com, weight)
    return [(0, moment, force), (1, weight_moment, weight)]


def _links_behind(tree, joint):
    behind = [joint.child]
    for other in tree.joints:  # sorted from the root outwards
        if other.parent in behind:
            behind.append(other.child)
    return behind


# --- Oracle 2: Pinocchio ------------------------------------------------------------------------


class Interpolated(NamedTuple):
    """Efforts and derivatives from interpolation along the motion."""

    efforts: np.ndarray  # (3, n): Q and its first two derivatives
    error: np.ndarray  # (3,): estimated error of each order, absolute


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

    def _frame(self, link):
        frame = self.model.getFrameId(link, self.pin.FrameType.BODY)
        if frame >= self.model.nframes:
            raise ValueError(f'Pinocchio has no link {link!r}')
        return frame

    def effort(self, motion, wrenches=()):
        """Q at one instant, shape (n,)."""
        q, qd, q2d = self.full(motion[:3])
        configuration = self.configuration(q)
        effort = self.pin.rnea(self.model, self.data, configuration, qd, q2d).copy()
        self.pin.computeJointJacobians(self.model, self.data, configuration)
        self.pin.updateFramePlacements(self.model, self.data)
        for wrench in wrenches:
            moment, force = wrench.values[0][:3], wrench.values[0][3:]
            # Pinocchio has the reference frame that each expression is made of.
            frame = {
                'body': self.pin.ReferenceFrame.LOCAL,
                'spatial': self.pin.ReferenceFrame.WORLD,
                'hybrid': self.pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
            }[wrench.expressed_in]
            J = self.pin.getFrameJacobian(
                self.model, self.data, self._frame(wrench.link), frame
            )
            sign = {'on_environment': 1, 'on_robot': -1}[wrench.acting]
            # Linear first in Pinocchio.
            effort += sign * J.T @ np.concatenate([force, moment])
        return self.G.T @ effort

    def effort_rate(self, motion, wrenches=()):
        """Exact dQ/dt by the chain rule, shape (n,).

        The wrenches are brought to the spatial expression first: of Pinocchio's Jacobian time
        variations, only that in the world frame is the time derivative of the Jacobian's entries.
        """
        q, qd, q2d, q3d = self.full(motion[:4])
        configuration = self.configuration(q)
        dQ_dq, dQ_dv, mass_matrix = (
            np.array(matrix)
            for matrix in self.pin.computeRNEADerivatives(
                self.model, self.data, configuration, qd, q2d
            )
        )
        # Only the upper triangle of Pinocchio's mass matrix is filled in by some versions.
        mass_matrix = np.triu(mass_matrix) + np.triu(mass_matrix, 1).T
        rate = dQ_dq @ qd + dQ_dv @ q2d + mass_matrix @ q3d

        world = self.pin.ReferenceFrame.WORLD
        aligned = self.pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        self.pin.forwardKinematics(self.model, self.data, configuration, qd)
        self.pin.computeJointJacobiansTimeVariation(
            self.model, self.data, configuration, qd
        )
        self.pin.updateFramePlacements(self.model, self.data)
        for wrench in wrenches:
            frame = self._frame(wrench.link)
            moment, force = wrench.values[0][:3], wrench.values[0][3:]
            moment_rate, force_rate = wrench.values[1][:3], wrench.values[1][3:]
            placement = self.data.oMf[frame]
            R, p = placement.rotation, placement.translation
            velocity = self.pin.getFrameVelocity(self.model, self.data, frame, aligned)
            if wrench.expressed_in == 'body':
                moment, force, moment_rate, force_rate = (
                    R @ moment,
                    R @ force,
                    R @ moment_rate + np.cross(velocity.angular, R @ moment),
                    R @ force_rate + np.cross(velocity.angular, R @ force),
                )
            if wrench.expressed_in != 'spatial':
                moment_rate = moment_rate + np.cross(velocity.linear, force)
                moment_rate = moment_rate + np.cross(p, force_rate)
                moment = moment + np.cross(p, force)
            J = self.pin.getFrameJacobian(self.model, self.data, frame, world)
            Jd = self.pin.getFrameJacobianTimeVariation(self.model, self.data, frame, world)
            sign = {'on_environment': 1, 'on_robot': -1}[wrench.acting]
            rate += sign * J.T @ np.concatenate([force_rate, moment_rate])
            rate += sign * Jd.T @ np.concatenate([force, moment])
        return self.G.T @ rate

    def interpolated(self, motion, wrenches=()):
        """Q and its first two derivatives, from Q along the motion continued as a polynomial.

        Q(t) is an entire function of t, so its Chebyshev coefficients fall faster than
        geometrically. Interval and node count are the pair with the smallest estimated error:
        what the coefficients have not fallen below, and rounding as the derivatives amplify it.
        """
        candidates = [
            self._interpolate(motion, wrenches, half_width, count)
            for half_width in (0.2, 0.35, 0.6, 1.0)
            for count in (24, 40)
        ]
        return min(candidates, key=lambda candidate: candidate.error[2])

    def _interpolate(self, motion, wrenches, half_width, count):
        nodes = chebyshev.chebpts1(count)
        samples = np.array(
            [self._effort_at(half_width * x, motion, wrenches) for x in nodes]
        )
        coefficients = 2.0 / count * chebyshev.chebvander(nodes, count - 1).T @ samples
        coefficients[0] /= 2.0
        efforts = np.array(
            [
                chebyshev.chebval(0.0, chebyshev.chebder(coefficients, order))
                / half_width**order
                for order in range(3)
            ]
        )
        # At the centre, the m-th derivative of the k-th Chebyshev polynomial is about k^m.
        largest = np.abs(samples).max()
        rounding = np.finfo(float).eps * largest * np.array([1.0, count, count**2])
        tail = np.abs(coefficients[-4:]).max() * np.array([1.0, count, count**2])
        return Interpolated(efforts, (rounding + tail) / half_width ** np.arange(3.0))

    def _effort_at(self, time, motion, wrenches):
        moved = [_polynomial(motion, time, order) for order in range(3)]
        return self.effort(
            moved,
            [
                changed(wrench, values=[_polynomial(wrench.values, time, 0)])
                for wrench in wrenches
            ],
        )


def _polynomial(derivatives, time, order):
    """The order-th derivative at a time of the polynomial with the given derivatives at 0."""
    return sum(
        np.asarray(value) * time**k / factorial(k)
        for k, value in enumerate(derivatives[order:])
    )
