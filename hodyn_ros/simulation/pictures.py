"""Pictures of a simulated robot, rendered without a window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import SimulationError
from hodyn_ros.simulation.backend import mujoco
from hodyn_ros.simulation.plant import ElasticPlant

Picture = NDArray[np.uint8]


def render(
    plant: ElasticPlant,
    q: ArrayLike,
    width: int = 640,
    height: int = 480,
    distance: float = 2.2,
    azimuth: float = 125.0,
) -> Iterator[Picture]:
    """Draw the links in some positions; the links are capsules between the joints.

    Parameters
    ----------
    plant : ElasticPlant
        Made with ``visible=True``. Its state stays as it is.
    q : array-like, shape (N, n)
        Joint positions [rad] or [m].
    width, height : int
        Size of the pictures, at most 1280 x 960.
    distance, azimuth : float
        Of the camera from the middle of the robot [m], and its direction [deg].

    Yields
    ------
    ndarray of uint8, shape (height, width, 3)

    Raises
    ------
    SimulationError
        If the plant is not visible or there is no OpenGL without a window; set the environment
        variable MUJOCO_GL to egl or osmesa before MuJoCo is imported.
    """
    if plant.mujoco_model.ngeom == 0:
        raise SimulationError('The plant has nothing to draw; make it with visible=True.')
    library = mujoco()
    try:
        renderer = library.Renderer(plant.mujoco_model, height, width)
    except Exception as error:  # of many classes, by the library that is missing
        raise SimulationError(
            f'OpenGL without a window is not available ({error}); set MUJOCO_GL to egl or osmesa.'
        ) from error
    try:
        yield from _frames(plant, renderer, _camera(distance, azimuth), q)
    finally:
        renderer.close()


def _frames(plant: ElasticPlant, renderer: Any, camera: Any, q: ArrayLike) -> Iterator[Picture]:
    library = mujoco()
    data = library.MjData(plant.mujoco_model)
    for position in np.atleast_2d(np.asarray(q, dtype=np.float64)):
        data.qpos[plant.link_addresses] = position
        library.mj_kinematics(plant.mujoco_model, data)
        library.mj_comPos(plant.mujoco_model, data)
        library.mj_camlight(plant.mujoco_model, data)
        renderer.update_scene(data, camera)
        picture: Picture = renderer.render()
        yield picture


def _camera(distance: float, azimuth: float) -> Any:
    camera = mujoco().MjvCamera()
    camera.lookat[:] = (0.2, 0.0, 0.4)
    camera.distance, camera.azimuth, camera.elevation = distance, azimuth, -15.0
    return camera
