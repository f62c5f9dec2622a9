"""MuJoCo: mj_inverse, efforts without derivatives, from Python and in a C loop.

Everything that costs time beside the inverse dynamics and can be turned off is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import compilation
from benchmarks.cases import Case
from benchmarks.timing import Contestant, NotInstalled

Array = NDArray[np.float64]

SAMPLES_FROM_PYTHON = 200
OFF = (
    'CONSTRAINT',
    'CONTACT',
    'EQUALITY',
    'LIMIT',
    'FRICTIONLOSS',
    'ACTUATION',
    'SENSOR',
    'SPRING',
    'DAMPER',
)

LOOP = """
#include <string.h>
#include <mujoco/mujoco.h>

/* motion: (samples, K, n), efforts: (samples, n). */
void loop(mjModel *model, mjData *data, long samples, long K, const double *motion,
          double *efforts) {
  const size_t n = (size_t)model->nv, size = n * sizeof(double);
  for (long i = 0; i < samples; ++i, motion += (size_t)K * n, efforts += n) {
    memcpy(data->qpos, motion, size);
    memcpy(data->qvel, motion + n, size);
    memcpy(data->qacc, motion + 2 * n, size);
    mj_inverse(model, data);
    memcpy(efforts, data->qfrc_inverse, size);
  }
}
"""


def from_python(case: Case) -> list[Contestant]:
    """Make the contestant that is called from Python for each sample."""
    mujoco, model, data, order = _model(case)
    motion = np.ascontiguousarray(case.motion[:SAMPLES_FROM_PYTHON, :3, order])
    efforts = np.empty((len(motion), 1, case.n))

    def run() -> None:
        qpos, qvel, qacc, found = data.qpos, data.qvel, data.qacc, data.qfrc_inverse
        inverse = mujoco.mj_inverse
        for (q, qd, q2d), result in zip(motion, efforts[:, 0]):
            qpos[:], qvel[:], qacc[:] = q, qd, q2d
            inverse(model, data)
            result[:] = found

    return [_contestant('from Python', run, efforts, order)]


def in_c(case: Case) -> list[Contestant]:
    """Make the contestant that loops over the samples in C."""
    mujoco, model, data, order = _model(case)
    loop = _loop(Path(mujoco.__file__).parent)
    motion = np.ascontiguousarray(case.motion[:, :3, order])
    samples, K, n = motion.shape
    efforts = np.empty((samples, 1, n))

    def run() -> None:
        # The bindings know the addresses of the structures behind their objects.
        structures = model._address, data._address
        loop(*structures, samples, K, motion.ctypes.data, efforts.ctypes.data)

    return [_contestant('C loop', run, efforts, order)]


def _contestant(
    how: str, run: Callable[[], None], efforts: Array, order: list[int]
) -> Contestant:
    def in_model_order() -> Array:
        result = np.empty_like(efforts)
        result[..., order] = efforts
        return result

    return Contestant(f'MuJoCo mj_inverse {how}', 0, len(efforts), run, in_model_order)


def _model(case: Case) -> tuple[Any, Any, Any, list[int]]:
    """Return the module, its model and data, and the joints of the model in MuJoCo's order."""
    try:
        import mujoco
    except ImportError:
        raise NotInstalled('mujoco is not installed') from None
    # MuJoCo would change doubtful inertias and merge links unless told otherwise.
    options = '<mujoco><compiler balanceinertia="false" fusestatic="true"/></mujoco>'
    model = mujoco.MjModel.from_xml_string(
        case.urdf.replace('</robot>', options + '</robot>')
    )
    model.opt.gravity[:] = case.model.gravity
    for name in OFF:
        model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f'mjDSBL_{name}')
    names = [model.joint(i).name for i in range(model.njnt)]
    order = [case.model.joint_names.index(name) for name in names]
    return mujoco, model, mujoco.MjData(model), order


def _loop(package: Path) -> Any:
    libraries = sorted(package.glob('libmujoco.so*'))
    if not libraries or not (package / 'include' / 'mujoco').is_dir():
        raise NotInstalled('the library or the headers of MuJoCo are missing')
    flags = [f'-I{package / "include"}', str(libraries[0]), f'-Wl,-rpath,{package}']
    loop = compilation.load(compilation.library('mujoco_loop', LOOP, 'c', flags)).loop
    loop.restype = None
    loop.argtypes = [*[ctypes.c_void_p] * 2, *[ctypes.c_long] * 2, *[ctypes.c_void_p] * 2]
    return loop
