"""Recordings of a Panda whose parameters are known, to find them again.

Pinocchio has the links, everything else is written down plainly; nothing here is of hodyn_ros.
Rigid joints: tau = M(q) q'' + h(q, q') + a q'' + friction(q') + offset. Elastic joints: the same Q
without friction is k d + c d^3 + D d' of the deflection d = theta - q, and the torque of the motor
B theta'' + Q + friction(theta') + offset. Motion is prescribed, from which all torques follow
exactly.

A motion is a function of times (N,) that gives positions and derivatives (N, K, 7), constant
before and behind; K is 5.
"""

from dataclasses import dataclass, field
from math import comb

import numpy as np
import pinocchio
from scipy.integrate import solve_ivp
from scipy.interpolate import make_interp_spline
from support.control_cases import (
    JOINTS,
    LINK_STEP,
    MOTOR_INERTIA,
    MOTOR_STEP,
    PANDA,
    STIFFNESS,
)

# Of the arm, from https://frankaemika.github.io/docs/control_parameters.html.
UPPER = np.array([2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973])  # rad
LOWER = np.array([-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973])
VELOCITY = np.array([2.175] * 4 + [2.61] * 3)  # rad/s
ACCELERATION = np.array([15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0])  # rad/s^2

# Friction of the arm by viscous and Coulomb friction and an offset: Gaz et al. 2019, supplement,
# Table III; the negative viscous coefficient of joint 6 is 0.01 here.
GAZ_VISCOUS = np.array([0.0665, 0.1987, 0.0399, 0.2257, 0.1023, 0.01, 0.0638])  # N m s/rad
GAZ_COULOMB = np.array([0.2450, 0.1523, 0.1827, 0.3591, 0.2669, 0.1658, 0.2109])  # N m
GAZ_OFFSET = np.array([-0.1073, -0.1566, -0.0686, -0.2522, 0.0045, 0.0910, -0.0127])  # N m

ORDER = 5  # of motions: positions and four derivatives
BODY_PARAMETERS = ('mass', 'hx', 'hy', 'hz', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
# (m, m c, Ixx, Ixy, Ixz, Iyy, Iyz, Izz) of what Pinocchio has as (..., Ixx, Ixy, Iyy, Ixz, ...).
IN_ORDER = (0, 1, 2, 3, 4, 5, 7, 6, 8, 9)


# --- Motions ----------------------------------------------------------------------------------


def smooth_step(x, order=ORDER):
    """From 0 at x <= 0 to 1 at x >= 1, and derivatives, (order, ...); four times continuous."""
    step = np.polynomial.Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70])
    inside = (x > 0.0) & (x < 1.0)
    rows = [np.where(inside, step(x), x >= 1.0)]
    return np.array(
        rows + [np.where(inside, step.deriv(r)(x), 0.0) for r in range(1, order)]
    )


class Fourier:
    """Sums of sines about a pose, faded in from it and out to it.

    q_j = q0_j + w(t) sum_l (a_lj sin(l f t) - b_lj cos(l f t)) / (l f)
    """

    def __init__(self, a, b, pose, frequency, duration, fade=3.0):
        self.a, self.b, self.pose = np.array(a), np.array(b), np.array(pose)
        self.frequency, self.duration, self.fade = frequency, duration, fade

    def __call__(self, times):
        t = np.clip(times, 0.0, self.duration)
        rates = self.frequency * np.arange(1, len(self.a) + 1)
        waves = []
        for r in range(ORDER):  # the r-th derivative turns each wave by a quarter, r times
            angle = np.outer(t, rates) + 0.5 * np.pi * r
            scale = rates ** (r - 1.0)
            waves.append(
                (np.sin(angle) * scale) @ self.a - (np.cos(angle) * scale) @ self.b
            )
        scale = self.fade ** -np.arange(float(ORDER))[:, None]
        before = smooth_step(t / self.fade) * scale
        behind = smooth_step((self.duration - t) / self.fade) * scale
        behind[1::2] *= -1.0
        window = leibniz(before, behind)
        motion = leibniz(window[..., None], np.array(waves))
        motion[0] += self.pose
        return np.moveaxis(motion, 0, 1)


def leibniz(f, g):
    """Derivatives of a product from those of its factors, along the first axis."""
    return np.array(
        [sum(comb(r, s) * f[s] * g[r - s] for s in range(r + 1)) for r in range(len(f))]
    )


# Gaz et al. 2019, supplement, Table II: 21 s at 0.15 pi rad/s.
GAZ_A = (
    (-0.2031, -0.0699, 0.3076, 0.1269, -0.2773, 0.2100, -0.2273),
    (0.1295, -0.5380, 0.5864, -0.0253, -0.0857, -0.1194, -0.5636),
    (-0.0090, -0.2015, -0.4813, -0.2405, 0.4810, -0.0950, -0.2099),
    (0.2319, -0.5535, -0.1228, 0.2178, 0.5311, -0.0964, 0.5725),
    (-0.7598, 0.2352, -0.5273, 0.6984, -0.1639, -0.0399, -0.3748),
)
GAZ_B = (
    (-0.1136, -0.2437, 0.3898, 0.0401, 0.5491, 0.0692, 0.2023),
    (0.6600, 0.1820, -0.0268, -0.1503, 0.1046, -0.6946, -0.2570),
    (-0.1858, -0.2390, 0.0179, 0.2359, 0.0407, -0.4442, -0.5010),
    (0.1867, -0.2647, 0.4767, -0.2022, -0.0432, -0.5749, 0.0774),
    (0.2357, 0.4252, 0.2726, 0.3693, 0.2448, -0.0698, -0.4833),
)
GAZ_POSE = (-0.5850, -0.1744, -0.3373, -1.8767, -1.0631, 1.7917, -0.7284)
GAZ = Fourier(GAZ_A, GAZ_B, GAZ_POSE, 0.15 * np.pi, 21.0)
"""The motion by which the arm was identified."""


def random_motion(seed, duration=20.0, frequency=0.2, harmonics=5, share=0.8):
    """As fast as a share of the limits of position, velocity and acceleration allows."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, harmonics, 7))
    middle, half = 0.5 * (UPPER + LOWER), 0.5 * (UPPER - LOWER)
    motion = Fourier(a, b, middle, 2.0 * np.pi * frequency, duration)
    moved = np.abs(motion(np.arange(0.0, duration, 0.002)) - pad(middle))
    largest = moved.max(axis=0)
    scale = share * np.min([half, VELOCITY, ACCELERATION] / largest[:3], axis=0)
    motion.a, motion.b = scale * motion.a, scale * motion.b
    return motion


def pad(pose):
    """A pose as a motion that rests, (5, 7)."""
    return np.concatenate([[pose], np.zeros((ORDER - 1, len(pose)))])


VALIDATION = random_motion(1001)
"""Another one, for what was found by other motions."""


# --- The robot --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Friction:
    """viscous v + (coulomb + stribeck exp(-(v / velocity)^2)) sign(v) + offset, of all joints."""

    viscous: np.ndarray = field(default_factory=GAZ_VISCOUS.copy)
    coulomb: np.ndarray = field(default_factory=GAZ_COULOMB.copy)
    stribeck: np.ndarray = field(default_factory=lambda: np.zeros(7))
    velocity: np.ndarray = field(default_factory=lambda: np.full(7, 0.05))
    offset: np.ndarray = field(default_factory=GAZ_OFFSET.copy)

    def __call__(self, v):
        dry = self.coulomb + self.stribeck * np.exp(-((v / self.velocity) ** 2))
        return self.viscous * v + dry * np.sign(v) + self.offset


def random_friction(seed, stribeck=False):
    """Half to one and a half times that of the arm."""
    rng = np.random.default_rng(seed)
    viscous, coulomb, offset, peak = rng.uniform(0.5, 1.5, (4, 7))
    more = {'stribeck': 0.5 * peak * GAZ_COULOMB} if stribeck else {}
    return Friction(
        viscous * GAZ_VISCOUS, coulomb * GAZ_COULOMB, offset=offset * GAZ_OFFSET, **more
    )


NO_FRICTION = Friction(*np.zeros((3, 7)), np.ones(7), np.zeros(7))


def panda(seed=None, payload=None):
    """Links of Pinocchio; with a seed others than the description has, all of them physical.

    Mass and extent of each body change: its points x move to (1 + A) x + b, and its density is
    scaled. `payload` is (mass, centre of mass (3,) in the axes of the flange).
    """
    model = pinocchio.buildModelFromXML(PANDA)
    assert tuple(model.names)[1:] == JOINTS
    if seed is not None:
        rng = np.random.default_rng(seed)
        for i in range(1, model.njoints):
            A = np.eye(4)
            A[:3, :3] += rng.normal(scale=0.05, size=(3, 3))
            A[:3, 3] = rng.normal(scale=0.01, size=3)
            P = model.inertias[i].toPseudoInertia().toMatrix()
            P = rng.uniform(0.8, 1.2) * A @ P @ A.T
            model.inertias[i] = pinocchio.PseudoInertia.FromMatrix(P).toInertia()
    if payload is not None:
        mass, centre = payload
        frame = model.frames[model.getFrameId('panda_link8')]
        held = pinocchio.Inertia(mass, np.array(centre, dtype=float), np.zeros((3, 3)))
        model.inertias[frame.parentJoint] += frame.placement.act(held)
    return model


def inertial_parameters(model):
    """(m, m c, Ixx, Ixy, Ixz, Iyy, Iyz, Izz) about the origins of the bodies, shape (70,)."""
    return np.concatenate(
        [
            model.inertias[i].toDynamicParameters()[list(IN_ORDER)]
            for i in range(1, model.njoints)
        ]
    )


def rigid_torques(model, motion):
    """Those of the links along a motion (N, >= 3, 7), shape (N, 7)."""
    data = model.createData()
    q, qd, q2d = np.moveaxis(motion[:, :3], 1, 0)
    return np.array([pinocchio.rnea(model, data, *row) for row in zip(q, qd, q2d)])


def regressor(model, motion):
    """Y of `inertial_parameters` along a motion, shape (N, 7, 70)."""
    data = model.createData()
    columns = np.add.outer(10 * np.arange(7), IN_ORDER).ravel()
    q, qd, q2d = np.moveaxis(motion[:, :3], 1, 0)
    rows = [
        pinocchio.computeJointTorqueRegressor(model, data, *row)[:, columns]
        for row in zip(q, qd, q2d)
    ]
    return np.array(rows)


# --- Measuring --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sensing:
    """How a robot is measured, and what is wrong with it."""

    period: float = 1e-3
    """Of samples [s]."""
    link_step: float = LINK_STEP
    """Of encoders at the links, 0 for exact ones [rad]."""
    motor_step: float = MOTOR_STEP
    """Of encoders of the motors, behind the gear [rad]."""
    noise: object = 0.0
    """Standard deviation of the torque, of rigid joints or motors: a number or (7,) [N m]."""
    sensor_noise: object = None
    """The same of torque sensors behind the springs; None where there are none."""
    sensor_offset: object = 0.0
    """What torque sensors show too much [N m]."""
    delay: float = 0.0
    """By which torques, of whatever origin, are late [s]."""
    limits: object = np.inf
    """At which torques are clipped, a number or (7,) [N m]."""
    spikes: float = 0.0
    """Share of torques that are wrong, by up to `spike` [N m]."""
    spike: float = 50.0
    jitter: float = 0.0
    """Standard deviation of the instants of sampling, which are stamped right [s]."""
    gaps: tuple = ()
    """Pairs of times between which nothing was recorded [s]."""

    def instants(self, duration, rng):
        """Times of samples, which are their stamps too."""
        t = np.arange(0.0, duration + 0.5 * self.period, self.period)
        if self.jitter:
            t = np.sort(t + rng.normal(scale=self.jitter, size=t.shape))
        for start, end in self.gaps:
            t = t[(t < start) | (t > end)]
        return t

    def torque(self, exact, noise, rng, offset=0.0):
        """What is shown of torques (N, 7)."""
        shown = exact + offset + rng.normal(size=exact.shape) * noise
        shown = np.clip(shown, -np.asarray(self.limits), self.limits)
        if self.spikes:
            wrong = rng.random(exact.shape) < self.spikes
            shown = shown + wrong * rng.uniform(-self.spike, self.spike, exact.shape)
        return shown


def rounded(x, step):
    return np.round(x / step) * step if step else np.array(x)


@dataclass(frozen=True)
class RigidRobot:
    """A Panda of rigid joints."""

    model: pinocchio.Model = field(default_factory=panda)
    armature: np.ndarray = field(default_factory=lambda: np.full(7, 0.1))
    """Of rotors [kg m^2]."""
    friction: Friction = field(default_factory=Friction)

    @classmethod
    def random(cls, seed, payload=None, stribeck=False):
        """One that is unlike the description."""
        armature = 0.2 * np.random.default_rng(seed + 1).uniform(0.5, 1.5, 7)
        return cls(panda(seed, payload), armature, random_friction(seed + 2, stribeck))

    def torques(self, motion):
        """Exact, (N, 7), along a motion (N, >= 3, 7)."""
        links = rigid_torques(self.model, motion)
        return links + self.armature * motion[:, 2] + self.friction(motion[:, 1])

    @property
    def truth(self):
        """Parameters by name, of all joints; inertial ones (70,)."""
        return {
            'inertial': inertial_parameters(self.model),
            'armature': self.armature,
            **vars(self.friction),
        }

    def record(self, motion=GAZ, sensing=None, seed=0):
        """What a recording of it holds, with `time` (N,) and arrays (N, 7)."""
        sensing, rng = sensing or Sensing(), np.random.default_rng(seed)
        t = sensing.instants(motion.duration, rng)
        exact = self.torques(motion(t - sensing.delay))
        return {
            'names': JOINTS,
            'time': t,
            'position': rounded(motion(t)[:, 0], sensing.link_step),
            'effort': sensing.torque(exact, sensing.noise, rng),
        }


@dataclass(frozen=True)
class ElasticRobot:
    """A Panda of elastic joints; friction and offset are of its motors."""

    model: pinocchio.Model = field(default_factory=panda)
    motor_inertia: np.ndarray = field(default_factory=MOTOR_INERTIA.copy)
    stiffness: np.ndarray = field(default_factory=STIFFNESS.copy)
    cubic: np.ndarray = field(default_factory=lambda: np.zeros(7))
    """Of springs [N m/rad^3]."""
    damping: np.ndarray = field(default_factory=lambda: np.zeros(7))
    """Parallel to springs [N m s/rad]."""
    friction: Friction = field(default_factory=Friction)
    hysteresis: float = 0.0
    """Of springs: force by which their way back differs, over `reach` [N m]."""
    reach: float = 2e-4
    """Deflection over which it turns [rad]."""

    @classmethod
    def random(cls, seed, payload=None, stribeck=False, cubic=False, damping=False):
        """One that is unlike the description."""
        rng = np.random.default_rng(seed + 1)
        inertia, stiffness, third, damper = rng.uniform(0.8, 1.2, (4, 7))
        return cls(
            panda(seed, payload),
            inertia * MOTOR_INERTIA,
            stiffness * STIFFNESS,
            third * 1e5 * cubic,
            3.0 * damper * damping,
            random_friction(seed + 2, stribeck),
        )

    def deflection(self, torque):
        """Of springs that carry a torque; Newton's method on a law that rises everywhere."""
        d = torque / self.stiffness
        for _ in range(50 if self.cubic.any() else 0):
            slope = self.stiffness + 3.0 * self.cubic * d**2
            step = (self.stiffness * d + self.cubic * d**3 - torque) / slope
            d = d - step
            if np.abs(step).max() < 1e-16:
                break
        return d

    def to_and_fro(self, torque):
        """Deflections of linear springs with k d + h z = torque, z' = d' / w (1 - z sign(d')).

        Source: Dahl 1968, "A solid friction model"; each step is solved by Newton's method.
        """
        d, z = torque / self.stiffness, np.zeros(7)
        for k in range(1, len(torque)):
            now, side = d[k - 1].copy(), np.sign(torque[k] - torque[k - 1])
            for _ in range(30):
                left = np.exp(-np.abs(now - d[k - 1]) / self.reach)
                force = side - (side - z) * left
                missed = self.stiffness * now + self.hysteresis * force - torque[k]
                slope = (
                    self.stiffness + self.hysteresis * (1.0 - z * side) * left / self.reach
                )
                now = now - missed / slope
                if np.abs(missed).max() < 1e-10:
                    break
            d[k], z = now, side - (side - z) * np.exp(-np.abs(now - d[k - 1]) / self.reach)
        return d

    def behaviour(self, motion, duration):
        """Functions of times (N,): torques behind the springs, theta and two derivatives."""
        t = np.arange(-0.05, duration + 0.05, 1e-3)
        Q = rigid_torques(self.model, motion(t))
        d = self.to_and_fro(Q) if self.hysteresis else self.deflection(Q)
        torque = make_interp_spline(t, Q, 5)
        if self.damping.any():
            assert self.damping.all()

            def rate(now, d):
                return (torque(now) - self.stiffness * d - self.cubic * d**3) / self.damping

            solution = solve_ivp(
                rate,
                (t[0], t[-1]),
                d[0],
                'DOP853',
                t,
                rtol=1e-10,
                atol=1e-12,
                max_step=0.02,
            )
            d = solution.y.T
        spring = make_interp_spline(t, d, 5)

        def motors(times):
            q = motion(times)
            return np.stack([q[:, r] + spring(times, r) for r in range(3)], axis=1)

        return torque, motors

    def torques(self, motion, times):
        """Exact torques of motors and behind the springs, (N, 7) each."""
        torque, motors = self.behaviour(motion, motion.duration)
        _, speed, acceleration = np.moveaxis(motors(times), 1, 0)
        Q = torque(times)
        return self.motor_inertia * acceleration + Q + self.friction(speed), Q

    @property
    def truth(self):
        """Parameters by name, of all joints; inertial ones (70,)."""
        return {
            'inertial': inertial_parameters(self.model),
            'motor_inertia': self.motor_inertia,
            'stiffness': self.stiffness,
            'cubic': self.cubic,
            'damping': self.damping,
            **vars(self.friction),
        }

    def record(self, motion=GAZ, sensing=None, seed=0):
        """What a recording of it holds, with `time` (N,) and arrays (N, 7).

        `effort` is that of torque sensors, None without them.
        """
        sensing, rng = sensing or Sensing(), np.random.default_rng(seed)
        t = sensing.instants(motion.duration, rng)
        torque, motors = self.behaviour(motion, motion.duration)
        late = t - sensing.delay
        _, speed, acceleration = np.moveaxis(motors(late), 1, 0)
        exact = self.motor_inertia * acceleration + torque(late) + self.friction(speed)
        effort = None
        if sensing.sensor_noise is not None:
            effort = sensing.torque(
                torque(late), sensing.sensor_noise, rng, sensing.sensor_offset
            )
        return {
            'names': JOINTS,
            'time': t,
            'position': rounded(motion(t)[:, 0], sensing.link_step),
            'effort': effort,
            'motor_position': rounded(motors(t)[:, 0], sensing.motor_step),
            'motor_torque': sensing.torque(exact, sensing.noise, rng),
        }


# --- What can be told apart ------------------------------------------------------------------


def columns(motion, kinds=()):
    """Columns of the inertial parameters (70) and of each kind (7), shape (N, 7, 70 + 7 k)."""
    terms = {
        'armature': motion[:, 2],
        'viscous': motion[:, 1],
        'coulomb': np.sign(motion[:, 1]),
        'offset': np.ones_like(motion[:, 0]),
    }
    parts = [terms[kind][..., None] * np.eye(7) for kind in kinds]
    return np.concatenate([regressor(panda(), motion), *parts], axis=2)


def base_values(parameters, kinds, independent):
    """What `independent` parameters (b,) take over from all of them, (70 + 7 k,).

    None of the others changes the torques in another way than they do, or there is an error.
    """
    rng = np.random.default_rng(0)
    motion = rng.normal(size=(200, 3, 7)) * [[[1.0], [1.0], [3.0]]]
    Y = columns(motion, kinds).reshape(-1, len(parameters))
    chosen = Y[:, independent]
    found, _, rank, _ = np.linalg.lstsq(chosen, Y @ parameters, rcond=1e-10)
    assert rank == len(independent), (
        f'of {len(independent)} parameters {rank} are independent'
    )
    np.testing.assert_allclose(chosen @ found, Y @ parameters, atol=1e-9)
    return found
