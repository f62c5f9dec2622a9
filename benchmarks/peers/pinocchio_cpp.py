"""Pinocchio in C++: its algorithm in a loop over samples, and finite differences on it.

The loop is compiled here, against the headers that the package `pin` brings, and those of Eigen
(package `cmeel-eigen`, or of the system).
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import compilation
from benchmarks.cases import Case
from benchmarks.peers.pinocchio_python import PinocchioModel, pinocchio
from benchmarks.timing import Contestant, NotInstalled

Array = NDArray[np.float64]

# What the CMake target of Pinocchio's headers defines.
DEFINITIONS = (
    '-DBOOST_MPL_LIMIT_LIST_SIZE=30',
    '-DBOOST_MPL_LIMIT_VECTOR_SIZE=30',
    '-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS',
    '-DBOOST_FUSION_INVOKE_MAX_ARITY=12',
)
# The compiler needs two minutes for the articulated bodies.
TIMEOUT = 900.0
# Finite differences of all orders with one step: rounding errors of eps / step^2 and truncation
# errors of step^2 meet near eps^(1/4).
STEP = 2e-4
ABA = 'Pinocchio C++ aba'
REGRESSOR = 'Pinocchio C++ computeJointTorqueRegressor'
DERIVATIVES = 'Pinocchio C++ computeRNEADerivatives'


def inverse_dynamics(case: Case) -> list[Contestant]:
    """Efforts alone, and with two derivatives by central differences."""
    loops = _library()
    pin = PinocchioModel(case)
    robot = _Robot(loops, pin)
    samples, K, n = pin.motion.shape
    efforts, derivatives = np.empty((samples, 1, n)), np.empty((samples, 3, n))
    motion = pin.motion.ctypes.data

    def rnea() -> None:
        loops.rnea_loop(robot.address, samples, K, motion, efforts.ctypes.data)

    def differences() -> None:
        loops.difference_loop(robot.address, samples, STEP, motion, derivatives.ctypes.data)

    return [
        Contestant(
            'Pinocchio C++ rnea', 0, samples, rnea, lambda: pin.in_model_order(efforts)
        ),
        Contestant(
            'Pinocchio C++ differences',
            2,
            samples,
            differences,
            lambda: pin.in_model_order(derivatives),
        ),
    ]


def forward_dynamics(case: Case, effort: Array) -> list[Contestant]:
    """Accelerations from the states of the motion and efforts, shape (N, orders, n).

    First in the axes of the world, which is faster, then in those of the bodies, the default.
    """
    loops = _library('aba')
    pin = PinocchioModel(case)
    robot = _Robot(loops, pin)
    samples, orders, n = effort.shape
    state = np.ascontiguousarray(pin.motion[:samples, :2])
    given = pin.in_pinocchio_order(effort)
    found = np.empty((samples, 1, n))
    arrays = state, given, found

    def run(world: int) -> None:
        pointers = (array.ctypes.data for array in arrays)
        loops.aba_loop(robot.address, samples, orders, world, *pointers)

    return [
        Contestant(
            name,
            0,
            samples,
            lambda world=world: run(world),
            lambda: pin.in_model_order(found),
        )
        for name, world in ((ABA, 1), (f'{ABA}, in body axes', 0))
    ]


def regressor(case: Case) -> list[Contestant]:
    """Regressor of order 0: Pinocchio's joints and parameters are in orders of its own."""
    return _matrices(case, REGRESSOR, 'regressor', 10)


def partial_derivatives(case: Case) -> list[Contestant]:
    """Partial derivatives of the efforts by positions, velocities and accelerations.

    In Pinocchio's order of joints, transposed; of those by accelerations one triangle.
    """
    return _matrices(case, DERIVATIVES, 'derivatives', 3)


def _matrices(case: Case, name: str, what: str, count: int) -> list[Contestant]:
    """Contestants that write so many n x n matrices for a sample."""
    loops = _library(what)
    pin = PinocchioModel(case)
    robot = _Robot(loops, pin)
    samples, K, n = pin.motion.shape
    found = np.empty((samples, count, n, n))
    function = getattr(loops, f'{what}_loop')

    def run() -> None:
        function(robot.address, samples, K, pin.motion.ctypes.data, found.ctypes.data)

    return [Contestant(name, 0, samples, run, lambda: found)]


class _Robot:
    """A robot on the C++ side, which lives as long as this object."""

    def __init__(self, loops: ctypes.CDLL, pin: PinocchioModel) -> None:
        model = pin.model
        joints = range(1, model.njoints)
        parents = np.array([model.parents[i] for i in joints], dtype=np.int64)
        slides = np.zeros(len(joints), dtype=np.int64)
        axes = np.empty((len(joints), 3))
        placements, inertias = np.empty((len(joints), 12)), np.empty((len(joints), 13))
        for row, i in enumerate(joints):
            joint, placement, body = (
                model.joints[i],
                model.jointPlacements[i],
                model.inertias[i],
            )
            if joint.nq != 1 or joint.nv != 1 or joint.idx_v != row:
                raise NotInstalled(
                    f'joints like {joint.shortname()} are not handed over to C++'
                )
            subspace = _motion_subspace(model, i)
            slides[row] = not subspace[3:].any()
            axes[row] = subspace[:3] if slides[row] else subspace[3:]
            placements[row, :9], placements[row, 9:] = (
                placement.rotation.ravel(),
                (placement.translation),
            )
            inertias[row, 0], inertias[row, 1:4] = body.mass, body.lever
            inertias[row, 4:] = body.inertia.ravel()
        gravity = np.ascontiguousarray(model.gravity.linear)
        self._delete = loops.robot_delete
        self.address = loops.robot_new(
            len(joints),
            *(
                array.ctypes.data
                for array in (parents, slides, axes, placements, inertias, gravity)
            ),
        )

    def __del__(self) -> None:
        self._delete(self.address)


def _motion_subspace(model: object, joint: int) -> Array:
    """Joint screw, linear part first: what a unit velocity of the joint gives."""
    pin = pinocchio()
    data = model.createData()  # type: ignore[attr-defined]
    v = np.zeros(model.nv)  # type: ignore[attr-defined]
    v[joint - 1] = 1.0
    pin.forwardKinematics(model, data, pin.neutral(model), v)
    screw: Array = data.v[joint].vector.copy()
    return screw


@cache
def _library(*more: str) -> ctypes.CDLL:
    """Compiled loops: those around efforts, and more, by the name of their file.

    Raises
    ------
    NotInstalled
        If Pinocchio, its headers, those of Eigen, or a compiler are missing.
    """
    package = Path(pinocchio().__file__).resolve()
    prefix = next(
        (p for p in package.parents if (p / 'include' / 'pinocchio').is_dir()), None
    )
    if prefix is None:
        raise NotInstalled('the headers of Pinocchio are missing')
    include = prefix / 'include'
    eigen = next(
        (path for path in (include, Path('/usr/include')) if (path / 'eigen3').is_dir()),
        None,
    )
    if eigen is None:
        raise NotInstalled('the headers of Eigen are missing (package cmeel-eigen)')
    folders = (include, include / 'pinocchio' / 'deprecated', eigen / 'eigen3')
    names = [f'pinocchio_{name}' for name in ('loop', *more)]
    files = [Path(__file__).with_name(f'{name}.cpp') for name in names]
    source = '\n'.join(file.read_text() for file in files)
    flags = ['-std=c++17', *DEFINITIONS, *(f'-I{folder}' for folder in folders)]
    loops = compilation.load(compilation.library(names[-1], source, 'c++', flags, TIMEOUT))
    pointer, integer = ctypes.c_void_p, ctypes.c_long
    loops.robot_new.restype = pointer
    loops.robot_new.argtypes = [integer, *[pointer] * 6]
    loops.robot_delete.argtypes = [pointer]
    loops.rnea_loop.argtypes = [pointer, integer, integer, pointer, pointer]
    loops.difference_loop.argtypes = [pointer, integer, ctypes.c_double, pointer, pointer]
    for name in more:
        arguments = [integer, *[pointer] * 3] if name == 'aba' else [pointer] * 2
        getattr(loops, f'{name}_loop').argtypes = [pointer, integer, integer, *arguments]
    return loops
