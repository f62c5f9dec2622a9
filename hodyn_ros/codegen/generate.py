"""Source code in C and C++ of the dynamics of one robot, for real-time controllers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros.checks import check_choice
from hodyn_ros.codegen.c_source import Code, cpp_header, filled, header, source
from hodyn_ros.codegen.self_test import self_test
from hodyn_ros.codegen.statements import LONGEST_NAME, PRECISIONS, identifier, is_identifier
from hodyn_ros.dynamics.wrenches import Wrench, checked_wrenches
from hodyn_ros.engine.joint_friction import friction_laws
from hodyn_ros.errors import RequestError, WrenchError
from hodyn_ros.interrupts import cleaned_up
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.resources import package_version

LANGUAGES = ('c', 'cpp')

HIGHEST_ORDER = 2


def generate_code(
    model: RobotModel,
    directory: str | os.PathLike[str],
    language: str = 'c',
    order: int | Sequence[int] = HIGHEST_ORDER,
    precision: str = 'double',
    name: str | None = None,
    wrench_links: Sequence[str] = (),
    overwrite: bool = False,
    controller: Any = None,
    forward_dynamics: bool = False,
    ros2_control: bool = False,
) -> list[Path]:
    """Write the dynamics of a robot as source code that needs nothing of this package.

    The code is straight-line arithmetic for this one robot, friction and armature included. Beside
    it are a program that compares it with reference values, and a CMakeLists.txt.

    Parameters
    ----------
    model : RobotModel
    directory : str or path-like
        Made if it does not exist.
    language : {'c', 'cpp'}
        C99, which is C++11 as well; for C++ there is one more header, whose functions, in a
        namespace, take and return std::array.
    order : int or sequence of int
        Highest derivative, 0, 1 or 2: there is a function for each up to it; or a choice of them.
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
    controller : ObserverController, optional
        Of `control.tracking_controller`, or a JointImpedance, GravityCompensation or
        TorqueControl, for the same model, with rigid drives and linear springs only. It is written
        in the same files, with observers, delay, limits and guards; there are then the functions
        of orders 0 and 2 as well. In double precision only.
    forward_dynamics : bool
        Whether there are functions for the accelerations that efforts cause, too, of the same
        orders, without wrenches.
    ros2_control : bool
        Whether this is a package of a controller of ros2_control around a tracking law, with the
        code in its directory ``kernel``. It builds beside hodyn_controllers.

    Returns
    -------
    list of pathlib.Path
        What was written: declarations, definitions, test, CMakeLists.txt; the package.

    Raises
    ------
    RequestError
        If an option is unknown or not there for a robot with closed loops, a file cannot be
        written or belongs to something else.
    WrenchError
        If a link does not exist or is named twice.
    ModelError
        If robot or motors have a friction law of one's own, or numbers beyond the precision.
    ControlError
        If there is no code for the controller, which has another model or other actuators.

    Notes
    -----
    The length of the code grows in proportion to the number of joints, and so does the time that
    compilers take for it, since long functions are divided into parts.

    Examples
    --------
    >>> from hodyn_ros import RobotModel, generate_code
    >>> written = generate_code(RobotModel.from_urdf('two_link'), 'generated', order=0)
    >>> [path.name for path in written]
    ['two_link_dynamics.h', 'two_link_dynamics.c', 'two_link_dynamics_test.c', 'CMakeLists.txt']
    """
    code = _checked_code(
        model, language, order, precision, name, wrench_links, bool(forward_dynamics)
    )
    if controller is not None and model.closure:
        raise RequestError(
            f'The model {model.name!r} has closed loops: no controller is generated for it.'
        )
    if hasattr(controller, 'added_to'):
        code = controller.added_to(code)
    elif controller is not None:
        raise RequestError(
            f'The controller is of type {type(controller).__name__}, expected what '
            'tracking_controller returns, or JointImpedance, GravityCompensation or TorqueControl.'
        )
    written = _files(code, language == 'cpp')
    if ros2_control:
        if type(controller).__name__ != 'TrackingController':
            raise RequestError(
                'A package for ros2_control needs a controller that tracking_controller returns, '
                f'not {type(controller).__name__}.'
            )
        written = {f'kernel/{path}': text for path, text in written.items()}
        written.update(_package(code, controller))
    return _write(Path(directory), written, code, overwrite)


def _files(code: Code, cpp: bool) -> dict[str, str]:
    """Files of C99, and for C++ one more header.

    Returns
    -------
    dict of str to str
        Texts in ASCII by the names of the files, declarations first.
    """
    unit = code.unit
    written = {
        **({f'{unit}.hpp': cpp_header(code), f'{unit}.c': ''} if cpp else {}),
        f'{unit}.h': header(code),
        f'{unit}.c': source(code),
        f'{unit}_test.c': self_test(code),
        'CMakeLists.txt': filled('CMakeLists.txt.in', code.values),
    }
    return {name: text.strip('\n') + '\n' for name, text in written.items()}


def _package(code: Code, law: Any) -> dict[str, str]:
    """Files of a package for ros2_control around code with a tracking law."""
    kinds = {type(actuator).__name__ for actuator in law.actuators.by_joint.values()}
    values = {
        **code.values,
        'package': f'{code.name.lower()}_tracking_controller',
        'version': package_version(),
        'rate': f'{round(1.0 / law.sample_period)}',
        'lead': f'{law.lead:g}',
        'is_elastic': 'false' if kinds == {'RigidDrive'} else 'true',
    }
    templates = Path(__file__).with_name('ros2_control')
    return {
        path.relative_to(templates).as_posix().removesuffix('.in'): filled(path, values)
        for path in sorted(templates.rglob('*.*'))
        if path.is_file()
    }


def _checked_code(
    model: RobotModel,
    language: str,
    order: int | Sequence[int],
    precision: str,
    name: str | None,
    wrench_links: Sequence[str],
    forward: bool,
) -> Code:
    """What code is generated for, from the options of `generate_code`."""
    if not isinstance(model, RobotModel):
        raise RequestError(f'The model is {model!r}, expected a RobotModel.')
    check_choice('language', language, LANGUAGES, RequestError)
    check_choice('precision', precision, PRECISIONS, RequestError)
    if not isinstance(wrench_links, Iterable):
        raise RequestError(
            f'wrench_links is {wrench_links!r}, expected a sequence of names of links.'
        )
    links = (wrench_links,) if isinstance(wrench_links, str) else tuple(wrench_links)
    if len(set(links)) < len(links):
        raise WrenchError(
            f'The links with wrenches are {listed(links)}, expected each of them once.'
        )
    checked_wrenches(model, [Wrench(link, np.zeros((1, 6))) for link in links], 1)
    if name is None:
        name = identifier(model.name)
    elif not is_identifier(name):
        raise RequestError(
            f'The name is {name!r}, expected letters, digits and single underscores in between, '
            f'with a letter first, {LONGEST_NAME} characters at most.'
        )
    if model.closure and (forward or precision != 'double'):
        raise RequestError(
            f'The model {model.name!r} has closed loops: its code is inverse dynamics in double '
            'precision. Leave out forward_dynamics and precision.'
        )
    friction_laws(model.tree)  # refuses those that cannot be generated
    orders = _checked_orders(order)
    return Code(model, name, orders, PRECISIONS[precision], links, forward=forward)


def _checked_orders(orders: int | Iterable[int]) -> tuple[int, ...]:
    """Orders, ascending and each once; one number stands for all up to it."""
    numbers = tuple(orders) if isinstance(orders, Iterable) else (orders,)
    possible = range(HIGHEST_ORDER + 1)
    if not numbers or any(
        isinstance(order, bool) or order not in possible for order in numbers
    ):
        raise RequestError(
            f'order is {orders!r}, expected a number from 0 to {HIGHEST_ORDER} or a sequence of '
            'such numbers.'
        )
    chosen = numbers if isinstance(orders, Iterable) else range(numbers[0] + 1)
    return tuple(sorted({int(order) for order in chosen}))


def _write(
    directory: Path, files: dict[str, str], code: Code, overwrite: bool
) -> list[Path]:
    """Paths of files that are written, all or none.

    A `RequestError` is raised if one exists that has not the mark of the code, unless it may be
    overwritten, or if the system refuses.
    """
    paths = {directory / name: text for name, text in files.items()}
    staged: dict[Path, Path] = {}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        foreign = [
            str(path)
            for path in paths
            if path.exists()
            and not (path.is_file() and code.mark.encode() in path.read_bytes())
        ]
        if foreign and not overwrite:
            raise RequestError(
                f'{", ".join(foreign)} exists and was not generated for {code.name!r}. '
                'Choose another directory, or overwrite it with overwrite=True.'
            )

        def put_away() -> None:
            for new in staged.values():
                new.unlink(missing_ok=True)

        with cleaned_up(put_away):
            for path, text in paths.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                staged[path] = path.with_name(f'.{path.name}.{os.getpid()}')
                staged[path].write_text(text, encoding='ascii', newline='\n')
            for path, new in staged.items():
                os.replace(new, path)
    except OSError as error:
        raise RequestError(f'The code cannot be written to {directory}: {error}') from error
    return list(paths)
