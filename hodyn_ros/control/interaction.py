"""Laws for robots with elastic joints that touch things and people.

Impedances feed the torque Q of the springs back, so that the motors feel lighter than they are,
B_theta instead of B, and give them a torque u,

    tau = Q + B B_theta^-1 (u - D_s (theta' - q') - Q) + friction,
    B_theta theta'' = u - Q - D_s (theta' - q'),

which keeps them passive. D_s damps the resonance of motor and spring and does nothing to slow
motions; a single joint stays passive with D_s / K <= D / K_m, where D and K_m are the damping and
stiffness between motor and wanted position.

Torque control and leading by hand are the same with B_theta = B, tau = u - D_s (theta' - q') +
friction, in which Q is not needed: at rest the links get u whatever the stiffness of the springs.

u is a function of the motors alone: u = l(q_b) less a damping, where theta = q_b + f^-1(l(q_b))
gives the links' position of rest on held motors, l being the torque wanted of the springs. So the
stiffness at rest is that of l: K_m = K_d (1 - K^-1 K_d)^-1 allows for the springs in series.

Sources: Albu-Schaeffer, Ott and Hirzinger 2007, "A unified passivity-based control framework for
position, torque and impedance control of flexible joint robots"; static inverse: Ott et al. 2008,
"On the passivity-based impedance control of flexible joint robots"; double diagonalisation:
Albu-Schaeffer et al. 2003, "Cartesian impedance control of redundant robots"; observed friction:
Le Tien et al. 2008, "Friction observer and compensation for control of robots".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.checks import checked_number, exact_poses, finite_array
from hodyn_ros.control.kernels import dampers
from hodyn_ros.control.layouts import BEYOND_RANGE, SPRINGS, TORQUE, WEIGHT
from hodyn_ros.control.margins import ControllerWithMargins
from hodyn_ros.control.values import middle_of_range
from hodyn_ros.dynamics.matrices import gravity_effort, mass_matrix
from hodyn_ros.errors import ControlError, DeflectionError
from hodyn_ros.kinematics.forward import LinkMotion, forward_kinematics
from hodyn_ros.kinematics.motions import link_or_tip
from hodyn_ros.lie import so3
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.codegen.c_source import Code


_RINGING = 0.5  # damping ratio of a motor on its spring, with the links held
_FASTEST = 0.6  # resonance by the sample time, from which on measurements come too late
_MOST_DAMPING = 0.8  # of a motor, by its inertia and the sample time
_MOST_STIFFNESS = 0.6  # by that of the springs
_SINGULAR = 1e-6  # added to the squares of the singular values of a Jacobian
_HALF_TURN = 3.0  # rad, from which on the axis of a rotation is found with more care


def _turn(R: Array) -> Array:
    """Rotation vector of a rotation of less than half a turn; `so3.log` takes longer.

    Parameters
    ----------
    R : ndarray, shape (3, 3)

    Returns
    -------
    ndarray, shape (3,)
        [rad]
    """
    v = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    sine = np.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    angle = np.arctan2(sine, 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0))
    turn: Array = v * (angle / sine if sine > 1e-9 else 1.0)
    return turn


class InteractionController(ControllerWithMargins):
    """What the laws for interaction share; see the module.

    Parameters
    ----------
    actuators, sample_period
        See `ObserverController`; variable stiffness is refused.
    damping : float or array-like, shape (n,) or (n, n)
        Of the motors against the ground [N m s/rad] or [N s/m].
    motor_share : float
        B_theta / B of elastic joints, above 0 to 1; closer to 1 for joints with fast resonances.
        If the torque is not fed back, only the springs are damped as those of such motors.
    observes_friction : bool
        Whether the friction of the motors is compensated as observed, or as the actuators know it;
        what is observed hangs on the springs, too, and is used only if their torque is fed back.
    feeds_torque_back : bool, optional
        Whether the measured torque of the springs is fed back, by default for impedances. That
        takes torque sensors or springs that are known to a percent, unless a stiffness holds the
        robot: what their stiffness is wrong by is missing in the torque that the links get.
    **options
        bandwidth, torque_limits, delay, observer; see `ObserverController`.

    Raises
    ------
    ControlError
        If an argument cannot be used, or the damping is too large for the sample time.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators
    >>> from hodyn_ros.control import GravityCompensation, InteractionController, JointImpedance
    >>> drives = Actuators(RobotModel.from_urdf('two_link'), {})
    >>> led: InteractionController = GravityCompensation(drives, 0.001)
    >>> held: InteractionController = JointImpedance(drives, 0.001, stiffness=50.0)
    >>> led.follows, held.follows
    (False, True)
    """

    damping_ratio: float = 0.0
    _axes = 0  # as many axes of the stiffness as joints
    _given: ArrayLike = 0.0

    kind: int = SPRINGS
    yields = True
    feeds_torque_back: bool = True
    _follows = _has_code = False  # a wanted motion; in C

    def __init__(
        self,
        actuators: Actuators,
        sample_period: float,
        *,
        damping: ArrayLike = 0.0,
        motor_share: float = 0.25,
        observes_friction: bool = True,
        feeds_torque_back: bool | None = None,
        **options: Any,
    ) -> None:
        super().__init__(actuators, sample_period, **options)
        if feeds_torque_back is not None:
            self.feeds_torque_back = feeds_torque_back
        t, n = self.observer.transmission, self.model.n_joints
        if t.is_variable:
            raise ControlError('A joint has variable stiffness: use TrackingController.')
        share = checked_number(
            'The motor_share', motor_share, ControlError, above=0.0, most=1.0
        )
        self._is_rigid = t.is_elastic == 0.0
        self.observes_friction: bool = observes_friction and self.feeds_torque_back
        middle = middle_of_range(self.model)
        stiffness = t.at(middle, middle).stiffness
        W = t.resonances(mass_matrix(self.model, middle[None])[0], stiffness)
        calm = np.maximum(0.0, 1.0 - W * self.sample_period / _FASTEST)
        lighter = 1.0 + np.where(self._is_rigid, 0.0, calm * (1.0 / share - 1.0))
        gain = lighter if self.feeds_torque_back else np.ones(n)
        self.felt_inertia: Array = t.inertia / gain
        self.damping: Array = _matrix('damping', damping, n)
        self.compliance: Array = self._compliance(stiffness)
        self._check(middle)
        is_asked = self._axes or not t.is_linear
        if self.kind == WEIGHT and self.feeds_torque_back:
            self.kind = SPRINGS
        self.record.fill(
            {
                'kind': self.kind,
                'holds': self.feeds_torque_back or self.stiffness.any(),
                'follows': self._follows,
                'is_asked': bool(is_asked),
                'observes_friction': self.observes_friction,
                'ratio': self.damping_ratio,
                'springs': self.permitted[1],
                'felt': self.permitted[2],
                'dampers': self.damping,
                'felt_inertia': self.felt_inertia,
                # Springs are damped no more than those of light motors, so that delays are borne.
                'damped_inertia': t.inertia / lighter,
                'gain': gain,
                'calm': 2.0 * _RINGING * calm,
            }
        )
        self.begin()

    def added_to(self, code: Code) -> Code:
        """Code of the dynamics and of this law; see `ObserverController.added_to`."""
        from hodyn_ros.control.c_code import with_law

        if not self._has_code:
            return super().added_to(code)
        return with_law(code, self)

    def _check(self, position: Array) -> None:
        """Refusal of a stiffness or damping that cannot be, where the robot is in a position.

        Parameters
        ----------
        position : ndarray, shape (n,)

        Raises
        ------
        ControlError
            If the springs in series do not permit the stiffness, or the sample time not the
            damping.
        """
        desired = self.at_rest(position)
        self.stiffness: Array = _matrix(
            'stiffness', self._given, self._axes or len(position)
        )
        self.permitted: tuple[float, Array, Array]
        self.permitted = share, _, felt = self._possible(self._hold(position, desired)[1])
        if share < 1.0:
            raise ControlError(
                'The stiffness is more than the springs in series permit, in the middle of the '
                f'range at most {share:.6g} of it: {(share * self.stiffness).tolist()}.'
            )
        mass = mass_matrix(self.model, position[None])[0]
        rigid = mass * np.outer(self._is_rigid, self._is_rigid)
        moved, D = np.diag(self.felt_inertia) + rigid, self._damping(mass, felt)
        D = np.linalg.solve(moved, D) * self.sample_period
        most = np.abs(np.linalg.eigvals(D)).max() / _MOST_DAMPING
        if most > 1.0:
            raise ControlError(
                f'The damping is {most:.3g} times as large as the sample time permits; lessen '
                'damping, damping_ratio or stiffness, or take a larger motor_share.'
            )

    def _compliance(self, stiffness: Array) -> Array:
        """Compliance of springs (n,) of some stiffness; zero for rigid joints."""
        found: Array = np.where(self._is_rigid, 0.0, 1.0 / (stiffness + self._is_rigid))
        return found

    def _rest(self, q: Array, result: Array) -> int:
        """Torques wanted of springs that rest at q; see `step.wanted_springs`."""
        w = self.observer.record
        self.compliance = self._compliance(w.stiffness)
        torque, stiffness = self._hold(q, w.wanted)
        self.permitted = share, K_d, K_m = self._possible(stiffness)
        self.record.springs[:], self.record.felt[:] = K_d, K_m
        result[:] = share * torque + w.along + w.weight
        try:
            w.deflection[:] = self._undamped.arrays.deflections(result[None])[0]
        except DeflectionError as error:
            self._text = str(error)
            return BEYOND_RANGE
        return 0

    def _damping(self, mass: Array, felt: Array) -> Array:
        """All dampers of the motors (n, n), for a mass matrix and K_m."""
        n, D, (L, A, U) = len(mass), np.zeros_like(mass), np.zeros((3, *mass.shape))
        elastic = self.observer.transmission.is_elastic
        for row, velocity in zip(D, -np.eye(n)):  # which is symmetric
            dampers(
                *(n, self.damping_ratio, elastic, self.felt_inertia, mass, felt),
                *(self.damping, velocity, L, A, U, np.zeros((2, n)), row),
            )
        return D

    def _possible(self, stiffness: Array) -> tuple[float, Array, Array]:
        """What the springs permit of a stiffness K_d.

        Parameters
        ----------
        stiffness : ndarray, shape (n, n)
            K_d [N m/rad] or [N/m].

        Returns
        -------
        share : float
            Of it, at most 1.
        stiffness, felt : ndarray, shape (n, n)
            That part of it, and its K_m.
        """
        compliance = self.compliance
        root = np.sqrt(compliance)
        most = np.linalg.eigvalsh(root[:, None] * stiffness * root)[-1]
        share = 1.0 if most <= _MOST_STIFFNESS else _MOST_STIFFNESS / most
        stiffness = share * stiffness
        felt = np.linalg.solve(np.eye(len(root)) - stiffness * compliance, stiffness)
        return share, stiffness, 0.5 * (felt + felt.T)

    def _hold(self, position: Array, desired: Array) -> tuple[Array, Array]:
        """Torques wanted of the springs besides the weight.

        Parameters
        ----------
        position : ndarray, shape (n,)
            Where the links are.
        desired : ndarray, shape (orders, n)

        Returns
        -------
        torque : ndarray, shape (n,)
            [N m] or [N]
        stiffness : ndarray, shape (n, n)
            [N m/rad] or [N/m]
        """
        return self.stiffness @ (desired[0] - position), self.stiffness


class GravityCompensation(InteractionController):
    """A robot without weight, to be led by hand: tau = g(q) - D theta'.

    The weight follows from where the links are measured, whatever the stiffness of the springs.
    `desired` is not looked at. See `InteractionController`.

    Parameters
    ----------
    actuators, sample_period, **options
        See `InteractionController`.
    feeds_torque_back : bool, optional
        By default the torque of the springs is not fed back, and friction is compensated as far as
        the actuators know it: with a stiffness that is wrong by some percent, the robot would
        sink. With it the motors feel like B_theta, and u = g(q_b) - D theta'.

    Source: De Luca, Siciliano and Zollo 2005, "PD control with on-line gravity compensation for
    robots with elastic joints".

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators
    >>> from hodyn_ros.control import GravityCompensation
    >>> law = GravityCompensation(Actuators(RobotModel.from_urdf('two_link'), {}), 0.001)
    >>> law.follows, law.yields
    (False, True)
    """

    kind = WEIGHT
    follows = feeds_torque_back = False
    _has_code = True


class TorqueControl(InteractionController):
    """Gives the links wanted torques: u = Q_d + D_s K^-1 Q_d' + B K^-1 Q_d'' - D theta'.

    `desired` (3, n) holds the wanted torques of the springs (of rigid joints: of the motors) and
    their first two time derivatives [N m/s^k] or [N/s^k]; the weight is part of them. At rest they
    are exact, but for friction of the motors that is not known. Links that accelerate get B q''
    less, since the motors have to be moved with them. See `InteractionController`.

    Parameters
    ----------
    actuators, sample_period, **options
        See `InteractionController`.
    feeds_torque_back : bool, optional
        By default the torque of the springs is not fed back: with a stiffness that is wrong, the
        links would get other torques. With it B_theta takes the place of B in elastic joints, and
        friction is compensated as it is observed.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators
    >>> from hodyn_ros.control import TorqueControl
    >>> law = TorqueControl(Actuators(RobotModel.from_urdf('two_link'), {}), 0.001)
    >>> law.at_rest([0.3, 0.5]).round(2)
    array([[39.64,  6.83],
           [ 0.  ,  0.  ],
           [ 0.  ,  0.  ]])
    """

    kind = TORQUE
    orders = 3
    feeds_torque_back = False
    _has_code = True

    def at_rest(self, position: ArrayLike) -> Array:
        """Torques that carry the weight of a robot at rest; see `ObserverController.at_rest`."""
        desired = super().at_rest(position)
        desired[0] = gravity_effort(self.model, desired[:1])[0]
        return desired


class JointImpedance(InteractionController):
    """Links on springs and dampers about a wanted motion, K_d (q_d - q) + damping.

    Weight, inertia and Coriolis torques of the wanted motion are fed forward. The dampers give the
    motors with the links, M + B_theta on K_m, the damping ratio in each of their modes.

    Parameters
    ----------
    actuators, sample_period, **options
        See `InteractionController`; a damping is added.
    stiffness : float or array-like, shape (n,) or (n, n)
        K_d, symmetric, not negative and at most 0.6 of the springs [N m/rad] or [N/m].
    damping_ratio : float
        1 for critical damping; of that, the springs permit 0.5 if K_d = K / 4.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import JointImpedance
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(2000.0, 0.5)})
    >>> law = JointImpedance(drives, 0.001, stiffness=[80.0, 50.0])
    >>> law.yields, law.estimates
    (True, True)
    """

    _follows = _has_code = True

    def __init__(
        self,
        actuators: Actuators,
        sample_period: float,
        *,
        stiffness: ArrayLike,
        damping_ratio: float = 0.7,
        **options: Any,
    ) -> None:
        ratio = checked_number('The damping_ratio', damping_ratio, ControlError, least=0.0)
        self.damping_ratio: float = ratio
        self._given = stiffness
        super().__init__(actuators, sample_period, **options)


class CartesianImpedance(JointImpedance):
    """A link on springs and dampers about a wanted pose.

    The potential is e^T K_x e / 2, where e holds the rotation vector and the way of the link from
    the wanted pose, in its axes. Joints that it leaves free are held by springs of their own,
    projected so that the link does not feel them. Where the springs do not permit the stiffness,
    as where the arm is stretched, it is lessened as a whole.

    Parameters
    ----------
    actuators, sample_period, damping_ratio, **options
        See `JointImpedance`.
    link : str, optional
        By default the tip.
    stiffness : float or array-like, shape (6,) or (6, 6)
        K_x, rotations first [N m/rad], [N/m].
    nullspace_stiffness : float or array-like, shape (n,) or (n, n)
        Towards the wanted positions of the joints [N m/rad] or [N/m].

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators
    >>> from hodyn_ros.control import CartesianImpedance
    >>> model = RobotModel.from_urdf('panda')
    >>> law = CartesianImpedance(Actuators(model, {}), 0.001, stiffness=[30.0] * 3 + [600.0] * 3)
    >>> law.yields, law.torque_limits
    (True, array([87., 87., 87., 87., 12., 12., 12.]))
    """

    _axes, _has_code = 6, False

    def __init__(
        self,
        actuators: Actuators,
        sample_period: float,
        link: str | None = None,
        *,
        nullspace_stiffness: ArrayLike = 10.0,
        **options: Any,
    ) -> None:
        self._link: str | None = link
        self._free = nullspace_stiffness
        self.aim(None)
        super().__init__(actuators, sample_period, **options)

    def aim(self, pose: ArrayLike | None) -> None:
        """Want a pose of the link.

        Parameters
        ----------
        pose : array-like, shape (4, 4), optional
            In the base; None: that of the wanted positions of the joints.

        Raises
        ------
        ControlError
            If it is no pose.
        """
        self._pose = None
        if pose is not None:
            goal = finite_array('The pose', pose, ControlError)
            if goal.shape != (4, 4):
                raise ControlError(f'The pose has shape {goal.shape}, expected (4, 4).')
            self._pose = exact_poses('The pose', goal, ControlError)

    def _check(self, position: Array) -> None:
        self._link, n = link_or_tip(self.model, self._link), len(position)
        # The link at a position, with the velocity of each joint alone, and at the wanted one.
        self._moved = np.zeros((n + 1, 2, n))
        self._moved[:n, 1] = np.eye(n)
        self.model.warm_up(2, self._at_link)
        self._nullspace = _matrix('nullspace_stiffness', self._free, len(position))
        super()._check(position)

    def _hold(self, position: Array, desired: Array) -> tuple[Array, Array]:
        self._moved[:, 0] = position
        self._moved[-1, 0] = desired[0]
        found, n = self._at_link(), len(position)
        pose, goal = found.pose[0], found.pose[n] if self._pose is None else self._pose
        R, J, way = goal[:3, :3].T, found.twist[:n, 0].T, desired[0] - position
        turn = _turn(R @ pose[:3, :3])
        if turn @ turn > _HALF_TURN**2:
            turn = so3.log(R @ pose[:3, :3])
        angle, hat = np.linalg.norm(turn), so3.hat(turn)
        # Of the rotation vector by the angular velocity in the wanted axes.
        bend = (
            (1.0 - 0.5 * angle / np.tan(0.5 * angle)) / angle**2
            if angle > 1e-3
            else 1.0 / 12.0
        )
        E = np.concatenate(
            [(np.eye(3) - 0.5 * hat + bend * hat @ hat) @ R @ J[:3], R @ J[3:]]
        )
        e = np.concatenate([turn, R @ (pose[:3, 3] - goal[:3, 3])])
        # What the link does not feel.
        N = np.eye(n) - J.T @ np.linalg.solve(J @ J.T + _SINGULAR * np.eye(6), J)
        free = N @ self._nullspace @ N
        return free @ way - E.T @ (self.stiffness @ e), E.T @ self.stiffness @ E + free

    def _at_link(self) -> LinkMotion:
        return forward_kinematics(self.model, self._moved, self._link, 'hybrid')


def _matrix(name: str, values: ArrayLike, n: int) -> Array:
    """Symmetric matrix without negative eigenvalues, from it, its diagonal or a number.

    Parameters
    ----------
    name : str
        For the message.
    values : float or array-like, shape (n,) or (n, n)
    n : int

    Returns
    -------
    ndarray, shape (n, n)
        Of its own.

    Raises
    ------
    ControlError
        If it is no such matrix.
    """
    array = finite_array(f'The {name}', values, ControlError)
    matrix = np.diag(np.broadcast_to(array, (n,))) if array.shape in ((), (n,)) else array
    is_symmetric = matrix.shape == (n, n) and np.allclose(
        matrix, matrix.T, rtol=1e-9, atol=0.0
    )
    if not is_symmetric or np.linalg.eigvalsh(matrix)[0] < -1e-9 * abs(matrix).max():
        raise ControlError(
            f'The {name} is {array.tolist()}, expected one number, {n} of them or a symmetric '
            f'matrix ({n}, {n}), without negative values or eigenvalues.'
        )
    return matrix.copy()
