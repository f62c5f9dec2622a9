"""Inverse dynamics: the public entry, which checks its input and chooses a formulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_choice
from hodyn_ros.dynamics.formulations import FORMULATIONS, spatial
from hodyn_ros.dynamics.wrenches import Wrench, loads_of, wrenches_on_bodies
from hodyn_ros.engine.engine import HIGHEST_ORDER, Engine, engine_of, quick
from hodyn_ros.engine.frames import frames_of
from hodyn_ros.engine.requests import COMPILED_ROBOT, COMPILED_TREE, EFFORTS, KernelRequest
from hodyn_ros.errors import HodynError, MotionError
from hodyn_ros.kinematics.arguments import Arguments, Batch, is_finite
from hodyn_ros.kinematics.closed_loops import ClosedMotion, with_closed_positions
from hodyn_ros.kinematics.forward import LinkMotion
from hodyn_ros.kinematics.inverse import InverseKinematicsSolution, inverse_kinematics
from hodyn_ros.kinematics.motions import (
    body_coordinates,
    independent_efforts,
)
from hodyn_ros.lie import se3
from hodyn_ros.model.friction import JointFriction
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.engine.kernels import Kernel

# Samples that NumPy computes together: large enough to hide the cost of Python, small enough for
# the intermediate arrays to stay in the cache.
BLOCK = 256
# Samples whose arrays are converted together for compiled code, if they have to be.
COMPILED_BLOCK = 2**16


ENGINE: dict[str, str | None] = {
    'engine': None,
    'compiled_robot': COMPILED_ROBOT,
    'compiled_tree': COMPILED_TREE,
}
"""Names of the engine's kernels: the one that suits the robot, and each form."""


def inverse_dynamics(
    model: RobotModel,
    motion: ArrayLike,
    wrench: Wrench | Sequence[Wrench] | None = None,
    algorithm: str = 'auto',
    *,
    out: Array | None = None,
    num_threads: int = 1,
    dtype: type[np.floating[Any]] = np.float64,
) -> Array:
    """Joint efforts of a motion and their exact time derivatives.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        `motion[..., k, :]` is the k-th time derivative of the joint positions in model order
        [rad/s^k] or [m/s^k], K >= 3. All types of real numbers are computed in `dtype`, in
        blocks, so that arrays in files (numpy.memmap) may be larger than the memory.
    wrench : Wrench or sequence of Wrench, optional
        Wrenches on links, with derivatives; leading axes broadcast with those of the motion.
    algorithm : str
        'auto', the name of a formulation, a key of `FORMULATIONS`, or of `ENGINE`. They
        agree to rounding and differ in cost and in the highest order that they compute. 'auto'
        runs compiled code for K <= 7 as soon as there is some, see `RobotModel.warm_up`, and NumPy
        otherwise; `chosen_algorithm` says which. The names of `ENGINE` wait for the compiler.
    out : ndarray of `dtype`, shape (..., K-2, n), optional
        Where to write the result, contiguous in C order.
    num_threads : int
        Threads that share a large batch among them; compiled code only.
    dtype : {numpy.float64, numpy.float32}
        Of the result, and of what is computed. float32 is for batches: compiled code takes about
        0.65 of the time if the motion is of float32, too. Beside float64, with the same motion,
        the errors of random robots with up to 30 joints are below 1e-6 of the largest effort of
        each order in the batch. Closed loops and formulations are computed in float64 and rounded.

    Returns
    -------
    ndarray, shape (..., K-2, n)
        `[..., m, :]` is the m-th time derivative of the joint torques [N m/s^m] or forces [N/s^m]:
        K = 3 gives Q, K = 5 gives Q and its first two derivatives.

    Raises
    ------
    MotionError
        If the motion has a wrong shape or holds NaN or infinite values, or a result overflows.
    WrenchError
        If a wrench does not fit the model or the motion.
    HodynError
        If the algorithm is unknown, cannot compute the order or needs a compiler that is missing,
        or if `out`, `num_threads` or `dtype` cannot be used.

    Notes
    -----
    Positive efforts act in the positive direction of their joints. Whatever the algorithm, they
    include the friction and armature of the model, if it has any. Source: Mueller 2021,
    "An O(n)-Algorithm for the Higher-Order Kinematics and Inverse Dynamics of Serial Manipulators
    using Spatial Representation of Twists", and the papers named in the formulations.

    Examples
    --------
    Torques of an arm with 1 rad/s in both joints, and their first two derivatives:

    >>> from hodyn_ros import RobotModel, inverse_dynamics
    >>> model = RobotModel.from_urdf('two_link')
    >>> motion = [[0.0, 0.5], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    >>> inverse_dynamics(model, motion).round(3)
    array([[ 41.937,   8.945],
           [-11.249,  -8.792],
           [-67.765, -34.772]])
    """
    # Types first: arrays compare element by element.
    plain = type(algorithm) is str and type(num_threads) is int
    if plain and algorithm == 'auto' and num_threads > 0 and dtype is float64:
        what, loads = (EFFORTS, None) if wrench is None else _as_called(wrench)
        effort = quick(model, what, motion, loads, out)
        if effort is not None:
            return effort  # type: ignore[no-any-return]
    samples = Arguments(model, motion, loads=loads_of(model, wrench))
    kind = _precision(dtype)
    if not isinstance(num_threads, (int, np.integer)) or num_threads < 1:
        raise HodynError(f'num_threads is {num_threads!r}, expected a positive integer.')
    single, shape = kind is np.float32, (samples.K - 2, model.n_joints)
    found = _computation(model, algorithm, samples, samples.N, single, int(num_threads))
    return samples.compute(found.efforts, shape, out, COMPILED_BLOCK, kind)


def _precision(dtype: Any) -> type[np.floating[Any]]:
    """Type of floats that is meant; a `HodynError` if it is none that can be computed."""
    with suppress(TypeError):
        for kind in (np.float64, np.float32):
            if dtype is not None and np.dtype(dtype) == kind:
                return kind
    raise HodynError(f'dtype is {dtype!r}, expected numpy.float64 or numpy.float32.')


def _as_called(wrench: Any) -> tuple[Any, Any]:
    """What `quick` computes with some wrenches, and their values; it knows nothing of others."""
    if type(wrench) in (list, tuple) and len(wrench) == 1:
        wrench = wrench[0]
    if type(wrench) is Wrench:
        return (wrench.link, wrench.expressed_in, wrench.acting), wrench.values
    if type(wrench) not in (list, tuple) or {*map(type, wrench)} != {Wrench}:
        return None, None
    links = ((item.link, item.expressed_in, item.acting) for item in wrench)
    values: list[Any] = [item.values for item in wrench]
    shape = values[0].shape
    if any(item.shape != shape for item in values):
        return None, None
    together = np.array(values) if len(shape) == 2 else np.stack(values, axis=-3)
    return (*chain(*links),), together


def chosen_algorithm(
    model: RobotModel,
    motion: ArrayLike,
    wrench: Wrench | Sequence[Wrench] | None = None,
    algorithm: str = 'auto',
) -> str:
    """Name of the algorithm that `inverse_dynamics` would use for these arguments at this moment.

    Returns
    -------
    str
        A key of `FORMULATIONS`, or a form of `ENGINE`.

    Raises
    ------
    MotionError, WrenchError, HodynError
        As `inverse_dynamics`.

    Examples
    --------
    Compiled code ends at K = 7:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.dynamics import chosen_algorithm
    >>> chosen_algorithm(RobotModel.from_urdf('two_link'), np.zeros((8, 2)))
    'nth_order'
    """
    samples = Arguments(model, motion, loads=loads_of(model, wrench))
    return _computation(model, algorithm, samples, 0).name


class LinkMotionEfforts(NamedTuple):
    """Joint efforts of a link motion, and the joint motion that they belong to.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, forward_kinematics, inverse_dynamics_from_link_motion
    >>> model = RobotModel.from_urdf('two_link')
    >>> wanted = forward_kinematics(model, [[0.3, 1.0], [0.5, 0.0], [0.0, 0.0]])
    >>> found = inverse_dynamics_from_link_motion(
    ...     model, wanted, guess=[0.2, 0.8], task=('x', 'z')
    ... )
    >>> found.effort.round(2), found.motion[0].round(3)
    (array([[35.43,  2.77]]), array([0.3, 1. ]))
    """

    effort: Array
    """Efforts and derivatives, shape (..., K-2, n), as `inverse_dynamics` returns them."""
    motion: Array
    """Joint motion, shape (..., K, n)."""
    kinematics: InverseKinematicsSolution
    """The whole result of `inverse_kinematics`, with the same motion."""


def inverse_dynamics_from_link_motion(
    model: RobotModel,
    link_motion: LinkMotion | tuple[ArrayLike, ArrayLike],
    link: str | None = None,
    expressed_in: str = 'body',
    *,
    wrench: Wrench | Sequence[Wrench] | None = None,
    algorithm: str = 'auto',
    **options: Any,
) -> LinkMotionEfforts:
    """Joint efforts and their exact time derivatives from the motion of a link.

    Parameters
    ----------
    model : RobotModel
    link_motion : LinkMotion or (pose, twist)
        Pose, shape (..., 4, 4), and twist with derivatives, shape (..., K-1, 6), K >= 3: the
        acceleration of the link gives efforts, its jounce (K = 5) their second derivatives.
    link, expressed_in, **options
        As in `inverse_kinematics`: guess, task, redundancy, times, options.
    wrench, algorithm
        As in `inverse_dynamics`.

    Raises
    ------
    HodynError
        As `inverse_kinematics` and `inverse_dynamics`.

    Returns
    -------
    LinkMotionEfforts

    Examples
    --------
    Torques of a tool that moves with 0.1 m/s along x of the base link:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, forward_kinematics, inverse_dynamics_from_link_motion
    >>> model = RobotModel.from_urdf('two_link')
    >>> pose, _ = forward_kinematics(model, [[0.3, 1.0]])
    >>> twist = [[0.0, 0.0, 0.0, 0.1, 0.0, 0.0], np.zeros(6)]
    >>> task = {'guess': [0.2, 0.8], 'task': ('x', 'z')}
    >>> inverse_dynamics_from_link_motion(
    ...     model, (pose, twist), expressed_in='hybrid', **task
    ... ).effort.round(2)
    array([[35.49,  2.62]])
    """
    if isinstance(link_motion, (tuple, list)) and len(link_motion) == 2:
        shape = np.shape(link_motion[1])
        if len(shape) > 1 and shape[-2] < 2:
            raise MotionError(
                f'The twist has shape {shape}, expected (..., K-1, 6) with K >= 3: efforts need '
                'the twist and its first derivative.'
            )
    kinematics = inverse_kinematics(model, link_motion, link, expressed_in, **options)
    effort = inverse_dynamics(model, kinematics.motion, wrench, algorithm)
    return LinkMotionEfforts(effort, kinematics.motion, kinematics)


def wrenches_in_tree(
    model: RobotModel, motion: ArrayLike, wrench: Wrench | Sequence[Wrench] | None = None
) -> Array:
    """What `inter_body_wrenches` returns, for a model without closed loops."""
    samples = Arguments(model, motion, loads=loads_of(model, wrench))
    K = samples.K

    def transmitted(_: Any, coordinates: Array, applied: Mapping[int, Array]) -> Array:
        W = spatial.inter_body(model, coordinates, applied)[1]
        return np.moveaxis(W, 0, 1)[:, : K - 2]

    compute = partial(_by_bodies, model, transmitted)
    return samples.compute(compute, (K - 2, model.n_bodies, 6))


# --- What computes ------------------------------------------------------------------------------


class _Computation(NamedTuple):
    """What computes the efforts of some samples: compiled code, or a formulation without any."""

    model: RobotModel
    formulation: str
    """Its name."""
    of_tree: Kernel | None = None
    """Efforts of a tree, from its motion."""
    of_loops: Kernel | None = None
    """Efforts of a model with closed loops, from what `with_closed_positions` returns."""
    num_threads: int = 1

    @property
    def name(self) -> str:
        """Key of `FORMULATIONS`, or form of `ENGINE`."""
        kernel = self.of_loops or self.of_tree
        return kernel.name if kernel else self.formulation

    def efforts(self, part: Batch, efforts: Array) -> bool:
        """Compute efforts (N, K-2, n); says whether motion and efforts are finite.

        Those of closed loops are G^T Q of their tree, in double precision.
        """
        model = self.model
        if model.closure is None:
            return self._in_tree(model, part, efforts)
        if not is_finite(part.motion):
            return False
        part = part._replace(motion=np.asarray(part.motion, dtype=np.float64))
        if self.of_loops is not None:
            whole, found = (
                with_closed_positions(model, part.motion),
                np.empty(efforts.shape),
            )
            if whole is not None and self.of_loops.evaluate(whole, part.packed(), found):
                efforts[...] = found
                return is_finite(efforts)
        # Positions are not closed by compiled code, or its factors are not good there.
        finite = True
        for which, block in part.blocks(BLOCK):
            closed = ClosedMotion(model, block.motion)
            Q = np.empty((*efforts[which].shape[:2], model.tree.n_joints))
            finite &= self._in_tree(model.tree, block._replace(motion=closed.motion), Q)
            efforts[which] = closed.efforts(Q)[0]
        return finite and is_finite(efforts)

    def _in_tree(self, model: RobotModel, part: Batch, efforts: Array) -> bool:
        """Compute efforts of a tree, with friction and wrenches that code does not include."""
        kernel = self.of_tree
        if kernel is None:
            finite = _by_bodies(model, self._of_bodies, part, efforts)
        else:
            by_bodies = kernel.wrench_size and kernel.name == COMPILED_TREE
            packed = _wrenches_on_bodies(model, part) if by_bodies else part.packed()
            finite = kernel.evaluate(part.motion, packed, efforts, self.num_threads)
        if finite and model.friction and not (kernel and kernel.friction):
            for which, block in part.blocks(BLOCK):
                efforts[which] += friction_efforts(model, block.motion)
            finite = is_finite(efforts)
        return finite

    def _of_bodies(
        self, model: RobotModel, coordinates: Array, applied: Mapping[int, Array]
    ) -> Array:
        """Efforts of the independent joints, without friction, by the formulation."""
        efforts = FORMULATIONS[self.formulation].body_efforts(model, coordinates, applied)
        return independent_efforts(model, efforts + model.armature * coordinates[:, 2:])


def _computation(
    model: RobotModel,
    algorithm: str,
    samples: Arguments,
    count: int,
    single: bool = False,
    num_threads: int = 1,
) -> _Computation:
    """What an algorithm means: names of `ENGINE` wait for the compiler.

    Of so many samples, that count for 'auto'. Closed loops have code of their own; only where they
    can have none, that of their tree is asked for.
    """
    order = samples.K - 3
    formulation = algorithm if algorithm in FORMULATIONS else 'nth_order'
    if algorithm in ENGINE:
        _check_order(algorithm, HIGHEST_ORDER, order)
    elif algorithm == formulation:
        _check_order(algorithm, FORMULATIONS[algorithm].highest_order, order)
    elif algorithm != 'auto':
        check_choice('algorithm', algorithm, ('auto', *FORMULATIONS, *ENGINE), HodynError)
    if algorithm == formulation or order > HIGHEST_ORDER:
        return _Computation(model, formulation)
    single = single and model.closure is None
    form = ENGINE.get(algorithm)
    request = KernelRequest(EFFORTS, samples.K, samples.links, form=form, single=single)

    def kernel(engine: Engine) -> Kernel | None:
        return (
            engine.kernel(request, count)
            if algorithm == 'auto'
            else engine.prepare(request)
        )

    if model.closure is not None and form is None:
        engine = model.kept(Engine)
        of_loops = kernel(engine)
        if of_loops is not None or request not in engine.kernels:
            return _Computation(model, formulation, None, of_loops)
    return _Computation(model, formulation, kernel(engine_of(model)), None, num_threads)


def _check_order(algorithm: str, highest: int | None, order: int) -> None:
    """Refusal of an order above the highest one of an algorithm."""
    if highest is not None and order > highest:
        raise HodynError(
            f'The algorithm {algorithm} computes orders up to {highest}, the motion has '
            f'K = {order + 3} for order {order}; use auto.'
        )


def _by_bodies(
    model: RobotModel,
    compute: Callable[[RobotModel, Array, Mapping[int, Array]], Array],
    part: Batch,
    results: Array,
) -> bool:
    """Compute samples by a function of the joint motions of bodies and the wrenches on them.

    In double precision, whatever that of the results is.
    """
    if not is_finite(part.motion):
        return False
    for which, block in part.blocks(BLOCK):
        motion = np.asarray(block.motion, dtype=np.float64)
        coordinates = body_coordinates(model, motion)
        applied = wrenches_on_bodies(model, coordinates, block.loads)
        results[which] = compute(model, coordinates, applied)
    return is_finite(results)


def _wrenches_on_bodies(model: RobotModel, part: Batch) -> Array:
    """Wrench on every body in the axes of its frame of the engine."""
    N, K, _ = part.motion.shape
    packed = np.zeros((N, model.n_bodies, K - 2, 6), part.motion.dtype)

    def of_bodies(_: Any, coordinates: Array, applied: Mapping[int, Array]) -> Array:
        found = np.zeros((len(coordinates), *packed.shape[1:]))
        for i, W in applied.items():
            found[:, i] = W @ se3.Ad(frames_of(model).poses[i])
        return found

    _by_bodies(model, of_bodies, part, packed)
    return packed.reshape(N, packed[:1].size)


def friction_efforts(model: RobotModel, motion: Array) -> Array:
    """Friction of the independent joints, with time derivatives.

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (N, K, n)
        K >= 3.

    Returns
    -------
    ndarray, shape (N, K-2, n)
        [N m/s^k] or [N/s^k]; zero without friction laws.
    """
    if model.closure is not None:
        closed = ClosedMotion(model, motion)
        return closed.efforts(friction_efforts(model.tree, closed.motion))[0]
    N, K, _ = motion.shape
    friction = np.zeros((N, K - 2, model.n_bodies))
    if model.friction:
        velocity = np.swapaxes(body_coordinates(model, motion)[:, 1:-1], -1, -2)
        friction += np.swapaxes(model.kept(_joint_friction)(velocity), -1, -2)
    return independent_efforts(model, friction)


def _joint_friction(model: RobotModel) -> JointFriction:
    """Friction laws by the index of the body, ready to be evaluated."""
    index = model.body_names.index
    return JointFriction({index(name): law for name, law in model.friction.items()})
