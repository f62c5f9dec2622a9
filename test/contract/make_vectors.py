"""Writes vectors.json: robots, their motions, and what mechanics makes of them.

    PYTHONPATH=test python test/contract/make_vectors.py

Nothing here comes from hodyn_ros. Poses of all links are power series in time, in extended
precision: joints move along screws, Rodrigues' formula has the series of sine and cosine. Newton's
and Euler's laws for 3-vectors in base axes give loads, virtual work gives efforts; a series is
differentiated term by term, partial derivatives are complex steps, and closed loops are equations
between points and axes of links. No recursion over bodies, no formula for any derivative.

The script says how far efforts to the second derivative, mass matrix and energies are from
Pinocchio, and the rate of the energy from the power of the joints. Closed loops are compared with
Pinocchio and MuJoCo in test_closed_loops.py.
"""

import json
from dataclasses import make_dataclass, replace
from math import factorial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio
from support.oracles import (
    PinOracle,
    apply,
    cross,
    cross_matrix,
    dot,
    factorials,
    mimic_of,
    product,
    rate,
    read_urdf,
    sine_and_cosine,
)

HERE = Path(__file__).parent
URDF = HERE.parents[1] / 'urdf'
REAL, COMPLEX, STEP = np.longdouble, np.clongdouble, 1e-60
EYE = np.eye(3, dtype=REAL)
FRAMES = ('body', 'spatial', 'hybrid')

# A link with the joint in front of it: columns are the independent joints; fixed ones have none.
FIELDS = 'joint link parent turn shift screw column ratio offset parameters'
Body = make_dataclass('Body', FIELDS.split())
Robot = make_dataclass('Robot', ['bodies', 'names', 'gravity'])


# --- Robots -------------------------------------------------------------------------------------


def of_urdf(xml, gravity):
    """All joints that move and follow no other are independent, in the order of the file."""
    tree, bodies = read_urdf(xml), []
    names = [joint.get('name') for joint in ElementTree.fromstring(xml).findall('joint')]
    names = [name for name in names if name in tree.independent]
    places = {tree.root: -1}
    for joint in tree.joints:
        screw, moving = np.zeros(6, REAL), joint.type != 'fixed'
        if moving:
            screw[3 if joint.type == 'prismatic' else 0 :][:3] = joint.axis
        name, ratio, offset = mimic_of(joint, tree.joints) if moving else ('', 0.0, 0.0)
        found = tree.inertials.get(joint.child)
        places[joint.child] = len(bodies)
        bodies.append(
            Body(
                joint.name,
                joint.child,
                places[joint.parent],
                joint.rotation,
                joint.translation,
                screw,
                names.index(name) if moving else None,
                ratio,
                offset,
                parameters(*found) if found else np.zeros(10, REAL),
            )
        )
    return Robot(bodies, names, np.array(gravity, REAL))


def of_screws(arguments):
    bodies = [
        Body(
            f'joint{i + 1}',
            f'link{i + 1}',
            parent,
            np.array(pose)[:3, :3].astype(REAL),
            np.array(pose)[:3, 3].astype(REAL),
            np.array(screw, REAL),
            i,
            1.0,
            0.0,
            parameters(*inertia),
        )
        for i, (screw, pose, parent, inertia) in enumerate(
            zip(*(arguments[key] for key in ('screws', 'poses', 'parents', 'inertias')))
        )
    ]
    return Robot(bodies, [b.joint for b in bodies], np.array(arguments['gravity'], REAL))


def parameters(mass, com, inertia):
    """Mass, first moments, moments of inertia xx, xy, xz, yy, yz, zz about the link's origin."""
    c, mass = np.array(com, REAL), REAL(mass)
    about = np.array(inertia, REAL) + mass * (c @ c * EYE - np.outer(c, c))
    return np.array([mass, *(mass * c), *about[np.triu_indices(3)]])


def tensor(pi):
    upper = np.zeros((3, 3), REAL)
    upper[np.triu_indices(3)] = pi[4:]
    return upper + np.triu(upper, 1).T


def random_inertia(rng):
    spread = rng.normal(0.0, 0.1, (3, 3))
    moments = spread @ spread.T
    return (
        rng.uniform(0.3, 4.0),
        rng.uniform(-0.2, 0.2, 3),
        np.trace(moments) * np.eye(3) - moments,
    )


def random_urdf(seed, kinds, parents, mimics):
    """Tree of joints of given kinds; `mimics` names the joints that follow others."""
    rng, parts = np.random.default_rng(seed), ['<link name="l0"/>']

    def text(values):
        return ' '.join(repr(float(value)) for value in values)

    def origin():
        xyz, rpy = rng.uniform(-0.4, 0.4, 3), rng.normal(size=3)
        return f'<origin xyz="{text(xyz)}" rpy="{text(rpy)}"/>'

    for i, (kind, parent) in enumerate(zip(kinds, parents), 1):
        mass, com, tensor = random_inertia(rng)
        entries = ''.join(
            f' i{"xyz"[a]}{"xyz"[b]}="{float(tensor[a, b])!r}"'
            for a in range(3)
            for b in range(a, 3)
        )
        inertial = f'{origin()}<mass value="{mass!r}"/><inertia{entries}/>'
        inertial = '' if kind == 'massless' else f'<inertial>{inertial}</inertial>'
        mimic = ''
        if i in mimics:
            ratio, offset = rng.uniform(-2.0, 2.0, 2).tolist()
            mimic = (
                f'<mimic joint="j{mimics[i]}" multiplier="{ratio!r}" offset="{offset!r}"/>'
            )
        parts.append(
            f'<link name="l{i}">{inertial}</link><joint name="j{i}" '
            f'type="{"revolute" if kind == "massless" else kind}"><parent link="l{parent}"/>'
            f'<child link="l{i}"/>{origin()}<axis xyz="{text(2.0 * rng.normal(size=3))}"/>'
            f'<limit lower="-9" upper="9" effort="9" velocity="9"/>{mimic}</joint>'
        )
    return f'<robot name="tree{seed}">{"".join(parts)}</robot>'


# --- Power series: the first axis counts the powers of time -------------------------------------


def turned(a):
    return np.swapaxes(a, -1, -2)


def constant(value, like):
    series = np.zeros((len(like), *np.shape(value)), like.dtype)
    series[0] = value
    return series


def from_rate(start, derivative, u):
    """Series y with y' = derivative(y) u', order by order."""
    y, du = constant(start, u), rate(u)
    for k in range(1, len(u)):
        y[k] = sum(a * b for a, b in zip(derivative(y[:k]), du[:k][::-1])) / k
    return y


def in_link(R, x):
    """Both vectors of twists, wrenches or columns of a Jacobian, from base to link axes."""
    multiply = apply if x.ndim == 2 else product
    halves = np.split(x, 2, axis=1)
    return np.concatenate([multiply(turned(R), half) for half in halves], axis=1)


def scalar(a, b):
    return np.convolve(a, b)[: len(a)]


def exponential(angle, screw):
    """Rotation and translation of the motion along a screw; Murray, Li and Sastry 1994, (2.36)."""
    e, v = screw[:3], screw[3:]
    sine, cosine = sine_and_cosine(angle)
    E = cross_matrix(e)
    R = constant(np.eye(3), angle) + sine[:, None, None] * E
    R += (constant(1.0, angle) - cosine)[:, None, None] * (E @ E)
    if not e.any():
        return R, angle[:, None] * v
    return R, (constant(np.eye(3), angle) - R) @ np.cross(e, v) + angle[:, None] * (
        e * (e @ v)
    )


# --- Mechanics ----------------------------------------------------------------------------------


class Moved:
    """A robot along a motion: series of poses, screws and loads, all in base axes."""

    def __init__(self, robot, motion):
        """The motion (K, n) holds derivatives, as everywhere outside of this class."""
        motion = np.asarray(motion)
        motion = motion.astype(COMPLEX if np.iscomplexobj(motion) else REAL)
        self.robot, self.q = robot, motion / factorials(len(motion))[:, None]
        self.R, self.p, self.S = [], [], []
        for body in robot.bodies:
            R, p = self.pose(body.parent)
            p, R = p + R @ body.shift, R @ body.turn
            if body.column is not None:
                angle = body.ratio * self.q[:, body.column]
                angle[0] += body.offset
                R_joint, p_joint = exponential(angle, body.screw)
                p, R = p + apply(R, p_joint), product(R, R_joint)
            e = R @ body.screw[:3]
            self.R.append(R)
            self.p.append(p)
            self.S.append(np.concatenate([e, R @ body.screw[3:] + cross(p, e)], axis=1))

    def pose(self, i):
        if i < 0:
            return constant(np.eye(3), self.q[:, 0]), constant(np.zeros(3), self.q[:, 0])
        return self.R[i], self.p[i]

    def place(self, link):
        return next((i for i, b in enumerate(self.robot.bodies) if b.link == link), -1)

    def twist(self, i, frame):
        R, p = self.pose(i)
        spin = product(rate(R), turned(R))
        w, v = spin[:, [2, 0, 1], [1, 2, 0]], rate(p)
        if frame == 'spatial':
            v = v + cross(p, w)
        twist = np.concatenate([w, v], axis=1)
        return in_link(R, twist) if frame == 'body' else twist

    def jacobian(self, i, frame):
        J = np.zeros((len(self.q), 6, len(self.robot.names)), self.q.dtype)
        for j in self.way(i):
            J[:, :, self.robot.bodies[j].column] += self.robot.bodies[j].ratio * self.S[j]
        R, p = self.pose(i)
        if frame != 'spatial':
            J[:, 3:] -= product(cross_matrix(p), J[:, :3])
        return in_link(R, J) if frame == 'body' else J

    def way(self, i):
        """Bodies with joints from the base to a link."""
        while i >= 0:
            if self.robot.bodies[i].column is not None:
                yield i
            i = self.robot.bodies[i].parent

    def loads(self, i, pi):
        """Moment about the base origin and force for inertia and weight of a link."""
        R, p = self.R[i], self.p[i]
        m, h, inertia = pi[0], R @ pi[1:4], tensor(pi)
        w, v = self.twist(i, 'hybrid')[:, :3], rate(p)
        P = m * v + cross(w, h)
        about = apply(product(R @ inertia, turned(R)), w)
        L = about + cross(h, v) + cross(p, P)
        g = constant(self.robot.gravity, self.q[:, 0])
        weight = np.concatenate([-cross(m * p + h, g), -m * g], axis=1)[: len(self.q) - 2]
        return np.concatenate([rate(L), rate(P)], axis=1), weight

    def applied(self, link, values, frame, acting):
        R, p = self.pose(self.place(link))
        values = np.array(values, REAL)
        m, f = np.split(values / factorials(len(values))[:, None], 2, axis=1)
        if frame == 'body':
            m, f = apply(R, m), apply(R, f)
        if frame != 'spatial':
            m = m + cross(p, f)
        return np.concatenate([m, f], axis=1) * (
            1.0 if acting == 'on_environment' else -1.0
        )

    def tool_weight(self, i, frame):
        """Moment and force of the weight of 2 kg at (0.1, -0.2, 0.3) m of a link."""
        R, p = self.pose(i)
        force = constant(2.0 * self.robot.gravity, self.q[:, 0])
        lever = R @ [0.1, -0.2, 0.3]
        if frame == 'body':
            force, lever = apply(turned(R), force), apply(turned(R), lever)
        moment = cross(p + lever if frame == 'spatial' else lever, force)
        return np.concatenate([moment, force], axis=1)

    def efforts(self, i, load):
        """Efforts of all joints that carry a load on a link, by virtual work."""
        Q = np.zeros((len(load), len(self.robot.names)), np.result_type(load, self.q))
        for j in self.way(i):
            Q[:, self.robot.bodies[j].column] += self.robot.bodies[j].ratio * dot(
                self.S[j], load
            )
        return Q

    def terms(self):
        """Efforts of inertia and of weight."""
        every = [(i, self.loads(i, b.parameters)) for i, b in enumerate(self.robot.bodies)]
        return [sum(self.efforts(i, load[term]) for i, load in every) for term in (0, 1)]

    def carried(self, i, wrenches=()):
        """What a joint carries: the loads of all links behind it, and wrenches on them."""
        behind = [k for k in range(len(self.robot.bodies)) if i in [*self.way(k), k]]
        load = sum(sum(self.loads(k, self.robot.bodies[k].parameters)) for k in behind)
        return load + sum(self.applied(*w) for w in wrenches if self.place(w[0]) in behind)

    def mass_matrix_and_energies(self):
        M = np.zeros((len(self.q), *[len(self.robot.names)] * 2), self.q.dtype)
        U = np.zeros(len(self.q), self.q.dtype)
        for i, body in enumerate(self.robot.bodies):
            m, h = body.parameters[0], self.R[i] @ body.parameters[1:4]
            J = self.jacobian(i, 'body')
            inertia = np.zeros((6, 6), REAL)
            inertia[:3, :3] = tensor(body.parameters)
            inertia[:3, 3:] = cross_matrix(body.parameters[1:4])
            inertia[3:, :3], inertia[3:, 3:] = inertia[:3, 3:].T, m * EYE
            M += product(turned(J), inertia @ J)
            U -= (m * self.p[i] + h) @ self.robot.gravity
        qd = rate(self.q)
        return M, dot(apply(M, qd), qd) / 2, U


def derivatives(series):
    """From coefficients of powers to derivatives, in double precision."""
    series = np.asarray(series)
    scale = factorials(len(series)).reshape(-1, *[1] * (series.ndim - 1))
    return (series * scale).astype(float)


# --- Closed loops -------------------------------------------------------------------------------


class Loops:
    """Loops of a URDF with `<loop>` elements, whose joints all close at zero."""

    def __init__(self, xml, gravity):
        root = ElementTree.fromstring(xml)
        joints = root.findall('joint')
        self.robot = of_urdf(xml, gravity)
        self.names = self.robot.names
        self.u = [
            self.names.index(j.get('name'))
            for j in joints
            if j.get('independent') == 'true'
        ]
        self.d = [j for j in range(len(self.names)) if j not in self.u]
        self.loops = []
        for loop in root.findall('loop'):
            ends = [loop.find(side) for side in ('predecessor', 'successor')]
            points = [np.array(e.find('origin').get('xyz').split(), REAL) for e in ends]
            axis = loop.find('axis') if loop.get('type') == 'revolute' else None
            axis = None if axis is None else np.array(axis.get('xyz').split(), REAL)
            self.loops.append(([e.get('link') for e in ends], points, axis))

    def residual(self, motion):
        moved, found = Moved(self.robot, motion), []
        for links, points, axis in self.loops:
            (R, p), (R_b, p_b) = (moved.pose(moved.place(link)) for link in links)
            found.append(p + R @ points[0] - p_b - R_b @ points[1])
            if axis is not None:
                found.append(cross(R @ axis, R_b @ axis))
        return np.concatenate(found, axis=1)

    def jacobian(self, motion):
        columns = []
        for j in range(len(self.names)):
            stepped = motion.astype(COMPLEX)
            stepped[0, j] += 1j * STEP
            columns.append(self.residual(stepped).imag / STEP)
        return np.stack(columns, axis=-1)

    def closed(self, motion):
        """Motion of all joints, and the series of their velocities by the independent ones."""
        q = np.zeros((len(motion), len(self.names)), REAL)
        q[:, self.u] = motion
        for k in range(len(motion)):
            for _ in range(12 if k == 0 else 3):  # one step, and what rounding leaves
                least = np.linalg.pinv(
                    self.jacobian(q[:1])[0][:, self.d].astype(float), 1e-9
                )
                q[k, self.d] -= factorial(k) * (least @ self.residual(q[: k + 1])[k])
        J, G = self.jacobian(q), np.zeros((len(q), len(self.names), len(self.u)), REAL)
        G[0, self.u, np.arange(len(self.u))] = 1.0
        for k in range(len(q)):
            for _ in range(3):
                G[k, self.d] -= least @ product(J[: k + 1], G[: k + 1])[k]
        return q, G


# --- What the file holds ------------------------------------------------------------------------


def open_case(robot, motion, links, wrenches=(), dear=False):
    """All quantities of an open robot along samples (S, K, n); the dear ones of the first."""
    moved = [Moved(robot, sample) for sample in motion]
    case = {'motion': motion}
    case['weight'] = [derivatives(m.terms()[1]) for m in moved]
    case['effort'] = [derivatives(sum(m.terms())) for m in moved]
    every = [[derivatives(x[:3]) for x in m.mass_matrix_and_energies()] for m in moved]
    case['mass_matrix'], case['kinetic_energy'], case['potential_energy'] = map(
        list, zip(*every)
    )
    case['links'] = {link: link_case(moved, link) for link in links}
    case['wrenches'] = [
        {
            'wrench': wrench,
            'effort': [
                derivatives(m.efforts(m.place(wrench[0]), m.applied(*wrench)))
                for m in moved
            ],
        }
        for wrench in wrenches
    ]
    if dear:
        first = moved[0]
        joints = [(i, b) for i, b in enumerate(robot.bodies) if b.column is not None]
        case['inter_body'] = {
            b.joint: derivatives(first.carried(i, wrenches)[:3]) for i, b in joints
        }
        unit = np.eye(10, dtype=REAL)
        case['regressor'] = {
            b.joint: [
                derivatives(first.efforts(i, sum(first.loads(i, pi)))[:2]) for pi in unit
            ]
            for i, b in joints
        }
        case['partials'] = partials(robot, motion[0][:5], ())
        case['partials_of_wrenches'] = partials(robot, motion[0][:4], wrenches)
    return case


def partials(robot, motion, wrenches):
    found = np.zeros((len(motion) - 2, len(robot.names), *motion.shape))
    for k, j in np.ndindex(*motion.shape):
        stepped = motion.astype(COMPLEX)
        stepped[k, j] += 1j * STEP
        m = Moved(robot, stepped)
        Q = sum(m.terms())
        for link, values, *rest in wrenches:
            load = m.applied(link, values[: len(Q)], *rest)
            Q = Q + m.efforts(m.place(link), load)
        found[..., k, j] = derivatives(Q.imag / STEP)
    return found


def link_case(moved, link):
    i, case = moved[0].place(link), {'pose': []}
    assert i >= 0, link
    for m in moved:
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = (x[0] for x in m.pose(i))
        case['pose'].append(pose)
    for frame in FRAMES:
        case[frame] = {
            'twist': [derivatives(m.twist(i, frame)) for m in moved],
            'jacobian': [derivatives(m.jacobian(i, frame)[:3]) for m in moved],
            'tool': [derivatives(m.tool_weight(i, frame)) for m in moved],
        }
    return case


def flying_case(arm, inertial, rng):
    """A robot on a base that moves: the base on six joints without mass."""
    carrier = [
        Body(
            '',
            f'c{i}',
            i - 1,
            EYE,
            np.zeros(3, REAL),
            np.eye(6, dtype=REAL)[(i + 3) % 6],
            i,
            1.0,
            0.0,
            np.zeros(10, REAL),
        )
        for i in range(6)
    ]
    carrier[5] = replace(carrier[5], parameters=parameters(*inertial))
    behind = [
        replace(b, parent=b.parent + 6, column=None if b.column is None else b.column + 6)
        for b in arm.bodies
    ]
    robot = Robot(carrier + behind, ['x'] * 6 + arm.names, arm.gravity)
    motion = rng.uniform(-1.0, 1.0, (2, 5, len(robot.names)))
    moved, wrenches = [Moved(robot, sample) for sample in motion], []
    for m in moved:
        R, p = m.pose(5)
        wrench = m.carried(5)
        wrench[:, :3] -= cross(p, wrench[:, 3:])
        wrenches.append(derivatives(in_link(R, wrench)))
    return {
        'inertial': inertial,
        'motion': motion[..., 6:],
        'effort': [derivatives(sum(m.terms()))[:, 6:] for m in moved],
        'base_wrench': wrenches,
        'base': link_case(moved, 'c5'),
    }


def loop_case(loops, motion):
    found = {key: [] for key in ('whole', 'effort', 'weight', 'mass_matrix', 'velocities')}
    for sample in motion:
        q, G = loops.closed(sample)
        moved = Moved(loops.robot, q)
        M = moved.mass_matrix_and_energies()[0]
        for key, series in (
            ('effort', apply(turned(G), sum(moved.terms()))),
            ('weight', apply(turned(G), moved.terms()[1])),
            ('mass_matrix', product(turned(G), product(M, G))[:3]),
            ('velocities', G[:3]),
        ):
            found[key].append(derivatives(series))
        found['whole'].append(q.astype(float))
    return {'motion': motion, 'joints': loops.names, **found}


LAWS = {  # name: parameters, and the series of the effort by the velocity
    'Viscous': ([0.7], lambda v, c: c * v),
    'Offset': ([0.3], lambda v, c: constant(c, v)),
    'Coulomb': ([1.3, 0.4], lambda v, c, s: c * tanh(v / s)),
    'Stribeck': (
        [0.8, 0.5, 0.3],
        lambda v, c, w, s: c * scalar(from_exp(-scalar(v / w, v / w)), tanh(v / s)),
    ),
    'Sigmoid': (
        [1.1, 3.0, 0.2],
        lambda v, a, b, c: (
            a / 2 * (tanh(b / 2 * (v + constant(c, v))) - constant(np.tanh(b * c / 2), v))
        ),
    ),
}


def tanh(u):
    return from_rate(np.tanh(u[0]), lambda y: constant(1.0, y) - scalar(y, y), u)


def from_exp(u):
    return from_rate(np.exp(u[0]), lambda y: y, u)


def friction_case(motion):
    """For each joint in turn a law, by its velocity."""
    found = np.zeros((len(motion), motion.shape[1] - 2, motion.shape[2]))
    laws = [list(LAWS)[j % len(LAWS)] for j in range(motion.shape[2])]
    for s, j in np.ndindex(len(motion), motion.shape[2]):
        q = motion[s, :, j].astype(REAL) / factorials(motion.shape[1])
        numbers, effort = LAWS[laws[j]]
        found[s, :, j] = derivatives(effort(rate(q)[:-1], *map(REAL, numbers)))
    return {'laws': [[name, LAWS[name][0]] for name in laws], 'effort': found}


# --- Another way to the same values --------------------------------------------------------------


def distance(a, b):
    a, b = np.array(a, float), np.array(b, float)
    return float(np.abs(a - b).max() / np.abs(b).max())


def compare_with_pinocchio(xml, robot, case, gravity):
    """Largest relative distances, and of the rate of the energy from the power."""
    pin, found = PinOracle(xml, robot.names, gravity), []
    for s, sample in enumerate(np.array(case['motion'])):

        def effort_rate(t, sample=sample):
            moved = [
                sum(row * t**k / factorial(k) for k, row in enumerate(sample[order:]))
                for order in range(4)
            ]
            return pin.effort_rate(moved)

        ahead = [effort_rate(k * 1e-3) for k in (-2, -1, 1, 2)]
        slope = np.array([1.0, -8.0, 8.0, -1.0]) @ ahead / 12e-3
        q, qd, _ = pin.full(sample[:3])
        at = pin.configuration(q)
        M = np.triu(pinocchio.crba(pin.model, pin.data, at))
        M = pin.G.T @ (M + np.triu(M, 1).T) @ pin.G
        T = pinocchio.computeKineticEnergy(pin.model, pin.data, at, qd)
        U = pinocchio.computePotentialEnergy(pin.model, pin.data, at)
        Q, T_here, U_here = (
            case[key][s] for key in ('effort', 'kinetic_energy', 'potential_energy')
        )
        pairs = [(pin.effort(sample), Q[0]), (effort_rate(0.0), Q[1]), (slope, Q[2])]
        pairs += [(case['mass_matrix'][s][0], M), (T_here[0], T), (U_here[0], U)]
        pairs.append((T_here[1] + U_here[1], Q[0] @ sample[1]))
        found.append([distance(*pair) for pair in pairs])
    return np.max(found, axis=0)


# --- The file -----------------------------------------------------------------------------------

BUNDLED = {  # links whose motion is in the file
    'panda': ['panda_link8', 'panda_link4'],
    'panda_with_hand': ['panda_rightfinger'],
    'fr3': ['fr3_link8'],
    'fr3_with_hand': ['fr3_leftfinger'],
    'iiwa14': ['iiwa_link_7'],
    'ur5e': ['tool0'],
    'ur10e': ['tool0'],
    'two_link': ['tool'],
}
TREES = {
    'branches': (
        'revolute prismatic fixed continuous revolute fixed',
        [0, 1, 2, 3, 2, 5],
        {},
    ),
    'followers': (
        'continuous revolute prismatic revolute massless prismatic revolute',
        [0, 1, 2, 1, 4, 5, 6],
        {3: 2, 6: 1, 7: 3},
    ),
}


def main():
    rng, robots, cases = np.random.default_rng(41), {}, {}

    def motion_of(n, K=5, S=2):
        motion = rng.uniform(-1.0, 1.0, (S, K, n))
        motion[:, 0] *= 2.0
        return motion

    def wrenches_on(links):
        return [
            [link, rng.normal(0.0, 9.0, (3, 6)), frame, acting]
            for link, (frame, acting) in zip(
                np.resize(links, 6),
                [(f, a) for f in FRAMES for a in ('on_environment', 'on_robot')],
            )
        ]

    def urdf_case(name, xml, links, gravity, dear, bundled=False):
        robot = of_urdf(xml, gravity)
        robots[name] = {'joints': robot.names, 'gravity': gravity}
        robots[name]['bundled' if bundled else 'urdf'] = name if bundled else xml
        wrenches = wrenches_on(links) if dear else ()
        cases[name] = open_case(robot, motion_of(len(robot.names)), links, wrenches, dear)
        print(name, compare_with_pinocchio(xml, robot, cases[name], gravity))
        return robot

    for name, links in BUNDLED.items():
        xml = (URDF / f'{name}.urdf').read_text()
        robot = urdf_case(name, xml, links, (0.0, 0.0, -9.81), name == 'panda', True)
        if name == 'panda':
            sample = motion_of(7, 9, 1)
            effort = derivatives(sum(Moved(robot, sample[0]).terms()))
            cases['order six'] = {'motion': sample, 'effort': [effort]}
            cases['friction'] = friction_case(np.array(cases[name]['motion']))
    for seed, (name, (kinds, parents, mimics)) in enumerate(TREES.items()):
        xml = random_urdf(seed, kinds.split(), parents, mimics)
        gravity = 9.81 * np.array([2.0, -1.0, 2.0]) / 3.0
        robot = urdf_case(name, xml, [f'l{len(parents)}', 'l3', 'l1'], gravity, True)
        if name == 'branches':
            cases['flying'] = flying_case(robot, random_inertia(rng), rng)
    screws = rng.normal(size=(5, 6))
    screws[:, :3] /= np.linalg.norm(screws[:, :3], axis=1)[:, None]
    poses = [np.eye(4) for _ in screws]
    for pose in poses:
        pose[:3, :3] = exponential(
            np.array([1.0], REAL), np.r_[rng.normal(size=3), 0, 0, 0]
        )[0][0]
        pose[:3, :3] = np.linalg.svd(pose[:3, :3])[0] @ np.linalg.svd(pose[:3, :3])[2]
        pose[:3, 3] = rng.uniform(-0.4, 0.4, 3)
    inertias = [random_inertia(rng) for _ in screws]
    robots['helical'] = {
        'screws': screws,
        'poses': poses,
        'parents': [-1, 0, 1, 1, 3],
        'inertias': inertias,
        'gravity': [1.0, -9.0, 3.0],
        'joints': [f'joint{i + 1}' for i in range(5)],
    }
    helical, links = of_screws(robots['helical']), ['link5', 'link3']
    cases['helical'] = open_case(helical, motion_of(5), links, wrenches_on(links), True)
    for name in ('five_bar', 'delta', 'palletiser', 'parallel_ankle'):
        xml, gravity = (URDF / f'{name}.urdf').read_text(), (0.0, 0.0, -9.81)
        loops = Loops(xml, gravity)
        motion = motion_of(len(loops.u))
        motion[:, 0] *= 0.05
        robots[name] = {'bundled': name, 'joints': [loops.names[j] for j in loops.u]}
        cases[name] = loop_case(loops, motion)
    text = json.dumps(
        {'robots': robots, 'cases': cases}, separators=(',', ':'), default=np.ndarray.tolist
    )
    (HERE / 'vectors.json').write_text(text.replace('],"', '],\n"') + '\n')


if __name__ == '__main__':
    main()
