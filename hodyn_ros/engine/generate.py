"""Source code in C and C++ of the inverse dynamics of one robot, for real-time controllers."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.engine.c_source import c_files, cpp_files
from hodyn_ros.engine.c_statements import (
    LONGEST_NAME,
    PRECISIONS,
    Precision,
    identifier,
    is_identifier,
)
from hodyn_ros.engine.code import Code, Reference
from hodyn_ros.errors import RequestError, WrenchError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.resources import share_file

LANGUAGES = {'c': c_files, 'cpp': cpp_files}
HIGHEST_ORDER = 2
SAMPLES = 5


def generate_code(
    model: RobotModel,
    directory: str | os.PathLike[str],
    language: str = 'c',
    orders: int | Sequence[int] = HIGHEST_ORDER,
    precision: str = 'double',
    name: str | None = None,
    wrench_links: Sequence[str] = (),
    overwrite: bool = False,
) -> list[Path]:
    """Write the inverse dynamics of a robot as source code that needs nothing of this package.

    The code is straight-line arithmetic for this one robot, friction and armature included. Beside
    it are a program that compares it with reference values, and a CMakeLists.txt.

    Parameters
    ----------
    model : RobotModel
    directory : str or path-like
        Made if it does not exist.
    language : {'c', 'cpp'}
        C99, or the same as C++11 with functions of std::array in a namespace around it.
    orders : int or sequence of int
        The orders, out of 0, 1 and 2, for which there is a function; a number means all up to it.
        The function of order r computes the efforts and their derivatives up to the r-th.
    precision : {'double', 'float'}
        Type of the numbers.
    name : str, optional
        Begins the names of files, functions and constants, and of the namespace; by default the
        name of the robot without what a name in C cannot hold.
    wrench_links : sequence of str
        Links on which wrenches act. There are then functions with and without them. Wrenches are
        expressed in the axes of their links about their origins, and act on the environment.
    overwrite : bool
        Whether to replace files that were not generated for the same name.

    Returns
    -------
    list of pathlib.Path
        What was written: declarations, definitions, test, CMakeLists.txt.

    Raises
    ------
    RequestError
        If an option is unknown, a file cannot be written or belongs to something else.
    WrenchError
        If a link does not exist or is named twice.
    ModelError
        If the robot has a friction law of one's own, or numbers beyond the precision.

    Notes
    -----
    The length of the code grows in proportion to the number of joints, and so does the time that
    compilers take for it, since long functions are divided into parts.
    """
    if not isinstance(model, RobotModel):
        raise RequestError(f'The model is {model!r}, expected a RobotModel.')
    write = _chosen('language', language, LANGUAGES)
    numbers = _chosen('precision', precision, PRECISIONS)
    wanted = _checked_orders(orders)
    links = _checked_wrench_links(model, wrench_links)
    if name is None:
        name = identifier(model.name)
    elif not is_identifier(name):
        raise RequestError(
            f'The name is {name!r}, expected letters, digits and single underscores in between, '
            f'with a letter first, {LONGEST_NAME} characters at most.'
        )
    code = Code(
        model, name, wanted, numbers, links, _version(),
        _reference(model, wanted[-1], numbers, links),
    )  # fmt: skip
    return _write(Path(directory), write(code), code, overwrite)


def _chosen(what: str, value: object, choices: Mapping[str, object]):  # type: ignore[no-untyped-def]
    if not isinstance(value, str) or value not in choices:
        raise RequestError(f'The {what} is {value!r}, expected one of {", ".join(choices)}.')
    return choices[value]


def _checked_orders(orders: int | Sequence[int]) -> tuple[int, ...]:
    possible = range(HIGHEST_ORDER + 1)
    up_to = isinstance(orders, (int, np.integer))
    try:
        given = [orders] if up_to else list(orders)  # type: ignore[arg-type]
    except TypeError:
        given = []
    if not given or any(isinstance(order, bool) or order not in possible for order in given):
        raise RequestError(
            f'orders is {orders!r}, expected a number from 0 to {HIGHEST_ORDER} or a sequence of '
            'such numbers.'
        )
    chosen = {int(order) for order in given}  # type: ignore[arg-type]
    return tuple(range(max(chosen) + 1)) if up_to else tuple(sorted(chosen))


def _checked_wrench_links(model: RobotModel, wrench_links: Sequence[str]) -> tuple[str, ...]:
    try:
        links = (wrench_links,) if isinstance(wrench_links, str) else tuple(wrench_links)
    except TypeError:
        raise RequestError(
            f'wrench_links is {wrench_links!r}, expected a sequence of names of links.'
        ) from None
    _check_links(model, links)
    return links


def _version() -> str:
    version = ElementTree.parse(share_file('package.xml')).findtext('version')
    return version or 'unknown'


def _reference(
    model: RobotModel, order: int, numbers: Precision, links: Sequence[str]
) -> Reference:
    """Compute samples for the test, all of whose inputs are exact in either precision."""
    rng = np.random.default_rng(0)
    motion = rng.integers(-128, 129, (SAMPLES, order + 3, model.n_joints)) / 64.0
    motion[:, 0] *= 1.5
    wrench = rng.integers(-640, 641, (SAMPLES, order + 1, len(links), 6)) / 64.0
    effort = inverse_dynamics(model, motion, algorithm='nth_order')
    wrenches = [Wrench(link, wrench[:, :, i]) for i, link in enumerate(links)]
    loaded = inverse_dynamics(model, motion, wrenches, algorithm='nth_order')
    scale = np.maximum(np.abs(effort), np.abs(loaded)).max(axis=(0, 2))
    # Where all efforts vanish, their rounding errors need not.
    scale = np.maximum(scale, 1e-3 * np.abs(model.M_body).max(initial=0.0))
    scale[scale == 0.0] = 1.0
    return Reference(motion, effort, wrench, loaded, scale)


def _write(directory: Path, files: dict[str, str], code: Code, overwrite: bool) -> list[Path]:
    """Write all files or none."""
    paths = {directory / name: text for name, text in files.items()}
    staged: dict[Path, Path] = {}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not overwrite:
            _refuse_foreign(list(paths), code)
        try:
            for path, text in paths.items():
                staged[path] = path.with_name(f'.{path.name}.{os.getpid()}')
                staged[path].write_text(text, encoding='ascii', newline='\n')
            for path, new in staged.items():
                os.replace(new, path)
        finally:
            for new in staged.values():
                new.unlink(missing_ok=True)
    except OSError as error:
        raise RequestError(f'The code cannot be written to {directory}: {error}') from error
    return list(paths)


def _refuse_foreign(paths: Sequence[Path], code: Code) -> None:
    foreign = [
        path
        for path in paths
        if path.exists() and not (path.is_file() and code.mark.encode() in path.read_bytes())
    ]
    if foreign:
        raise RequestError(
            f'{", ".join(map(str, foreign))} exists and was not generated for {code.name!r}. '
            'Choose another directory, or overwrite it with overwrite=True.'
        )


def _check_links(model: RobotModel, wrench_links: Collection[str]) -> None:
    """Check that links that carry wrenches exist and are named once.

    Raises
    ------
    WrenchError
    """
    for link in wrench_links:
        if link not in model.links:
            raise WrenchError(
                f'Wrench on an unknown link. The model has no link {link!r}; its links are '
                f'{listed(model.links)}.'
            )
    if len(set(wrench_links)) < len(wrench_links):
        raise WrenchError(
            f'The links with wrenches are {listed(wrench_links)}, expected each of them once.'
        )
