"""Control laws with their observers as C99, beside the dynamics that `codegen` writes.

All that a law does is said in `step` and the modules before it; here it is translated, with the
numbers of one robot and one law.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from hodyn_ros.actuators.drives import RigidDrive, SeriesElastic
from hodyn_ros.actuators.springs import LinearSpring
from hodyn_ros.codegen.c_source import Code, filled, model_hash, program_function
from hodyn_ros.codegen.statements import names_in
from hodyn_ros.codegen.translation import HELPERS, Environment, translated
from hodyn_ros.control import step
from hodyn_ros.control.controller import motor_losses
from hodyn_ros.control.layouts import LAW, OBSERVER, SPRINGS, TORQUE, TRACKING, WEIGHT
from hodyn_ros.control.observing import MOST_FOUND
from hodyn_ros.control.records import WHOLE, Record, sized
from hodyn_ros.control.suspicion import MOST_GATED
from hodyn_ros.engine.efforts import effort_program
from hodyn_ros.engine.program import MASS_MATRIX
from hodyn_ros.engine.program import WEIGHT as GRAVITY
from hodyn_ros.engine.terms import term_program
from hodyn_ros.errors import ControlError

if TYPE_CHECKING:
    from hodyn_ros.control.observer_controller import ObserverController

# Of a robot with more the program of the mass matrix is too long to compile.
MOST_BODIES = 32

_MOTION = 'motion, as above: position to snap'
_DESIRED = {
    TRACKING: _MOTION,
    WEIGHT: 'motion, as above; not looked at',
    TORQUE: 'torques of the springs and two time derivatives [N m/s^k, N/s^k]',
    SPRINGS: _MOTION,
}


def with_law(code: Code, controller: ObserverController) -> Code:
    """Code with a controller beside the dynamics of orders 0 and 2; see `generate_code`.

    Parameters
    ----------
    code : Code
        Of the dynamics.
    controller : ObserverController

    Returns
    -------
    Code
        With orders 0 and 2 among its orders, and the declarations and definitions of the
        controller.

    Raises
    ------
    ControlError
        If the models differ, the robot has more bodies than a controller in C may have, the
        precision is not double, or an actuator has no code.
    """
    _check(code, controller)
    n, delay = controller.model.n_joints, controller.observer.delay_samples
    numbers = step.numbers_of_steps()
    functions = _functions(code, controller, numbers)
    used, members = names_in([functions]), {}
    for name, shapes in {**OBSERVER.parts, **LAW.parts}.items():
        members[name.lower()] = '\n'.join(
            f'    {"int" if x in WHOLE else "double"} {x}{_brackets(shape, n, delay)};'
            for x, shape in shapes.items()
            if x != 'calls' and (x in used or x in _ALWAYS)
        )
    constants = ''.join(
        f'enum {{ {name} = {value} }};\n'
        if isinstance(value, int)
        else f'static const double {name} = {value!r};\n'
        for name, value in numbers.items()
        if name in used and name.isupper()
    )
    values = {
        **code.values,
        **members,
        'of_robot': _initial(controller.observer.record, 'Robot', used),
        'of_design': _initial(controller.record, 'Design', used),
        'constants': constants,
        'functions': functions,
        'law': type(controller).__name__,
        'desired': _DESIRED[controller.kind] if controller.follows else _DESIRED[WEIGHT],
        'T': f'{controller.sample_period!r}',
        'lead': f'{controller.lead!r}',
        'rows': f'{controller.orders}',
        'delay': f'{delay}',
        'last': f'{n - 1}',
        'most_gated': f'{MOST_GATED}',
        'most_found': f'{MOST_FOUND}',
    }
    return code._replace(
        orders=tuple(sorted({*code.orders, 0, 2})),
        declarations=filled('law.h', values),
        definitions=filled('law.c', values),
    )


_PLACES = {
    'Robot': 'ROBOT.',
    'Observed': '{}->memory->',
    'Work': '{}->work->',
    'Design': 'DESIGN.',
    'Memory': '{}->',
}
_KINDS = 'TRACKING', 'WEIGHT', 'TORQUE'
_ALWAYS = ('links', 'motors', 'least', 'gated', 'reason', 'culprit', 'acting')


def _check(code: Code, controller: ObserverController) -> None:
    """Refuse a controller that has no code, or cannot stand beside some."""
    model = controller.model
    if model_hash(code.model) != model_hash(model):
        raise ControlError(
            'The controller has another model than the code; expected one that was made with '
            'Actuators of the same model.'
        )
    if model.n_bodies > MOST_BODIES:
        raise ControlError(
            f'The robot has {model.n_bodies} moving bodies, a controller in C at most '
            f'{MOST_BODIES}.'
        )
    if code.precision.type != 'double':
        raise ControlError("The precision is 'float', expected 'double' for a controller.")
    for item in controller.actuators.driven:
        actuator: Any = item.actuator
        is_line = type(getattr(actuator, 'spring', None)) is LinearSpring
        if type(actuator) is not RigidDrive and not (
            type(actuator) is SeriesElastic and is_line
        ):
            raise ControlError(
                f'No code is generated for {actuator!r} of joint {item.name!r}, but for '
                'RigidDrive and SeriesElastic with a linear spring. Call the controller in '
                'Python, or make one with the stiffness that the spring has about its load.'
            )


def _functions(
    code: Code, controller: ObserverController, numbers: Mapping[str, float]
) -> str:
    """C functions of the robot, and of the law as far as it uses them."""
    model, n, design = controller.model, controller.model.n_joints, controller.record
    losses = motor_losses(controller.actuators)  # refuses those that cannot be generated
    programs = {
        'mass_matrix': (n, n * n, term_program(model, MASS_MATRIX, 1)),
        'gravity': (n, n, term_program(model, GRAVITY, 1)),
    }
    has_friction = controller.observer.record.has_friction > 0.0
    is_known = design.observes_friction == 0.0
    if has_friction:
        programs['motor_friction'] = 3 * n, n, effort_program(losses, 0)
    known = {
        **dict.fromkeys(
            ('o.is_bent', 'o.is_variable', 'c.is_asked', 'c.kind == GIVEN'), False
        ),
        'o.has_friction': has_friction,
        'not c.observes_friction': is_known,
        'c.follows': design.follows > 0.0,
    }
    known |= {f'c.kind == {x}': controller.kind == numbers[x] for x in _KINDS}
    elsewhere = {name: name for name in programs}
    elsewhere |= {f'efforts_{k}': f'{code.name}_inverse_dynamics_{k}' for k in (0, 2)}
    around = Environment(
        {'Matrix': 'n', 'MotorMatrix': 'm'},
        {
            x.name: {_PLACES[name]: shapes for name, shapes in x.parts.items()}
            for x in (OBSERVER, LAW)
        },
        ('Observer',),
        {'n': 'N', 'm': 'N', 'd': 'DELAY'},
        known,
        elsewhere,
    )
    roots = 'step', 'stop', 'release', 'begin', 'is_finite'
    equations = translated(step.source_of_steps(), roots, around)
    is_used = names_in([equations]).__contains__
    if not is_used('motor_friction'):
        programs.pop('motor_friction', None)
    helpers = [line for line in HELPERS.splitlines() if any(map(is_used, _defined(line)))]
    texts = [
        program_function(code, name, {'motion': given, 'result': size}, program, True)
        for name, (given, size, program) in programs.items()
    ]
    return '\n'.join([*texts, *helpers, '', equations])


def _defined(line: str) -> list[str]:
    """Name of a constant or function that a line defines, if any."""
    return re.findall(r'^static (?:const )?double (\w+)', line)


def _brackets(shape: tuple[str, ...], n: int, delay: int) -> str:
    """Size of an array of a struct; nothing for a number."""
    return f'[{" * ".join(map(str, sized(shape, n, n, delay)))}]' if shape else ''


def _initial(record: Record, part: str, used: Collection[str]) -> str:
    """Values of the members of a struct that are used, wrapped at 90 columns."""
    texts = []
    for name, shape in record.layout.parts[part].items():
        if name in used and name != 'calls':
            values = getattr(record, name)
            numbers = [str(x) for x in values.ravel().tolist()] if shape else [repr(values)]
            text = ', '.join(numbers).replace('inf', 'INFINITY')
            texts.append(f'{{{text}}}' if shape else text)
    lines = ',\n'.join(texts).splitlines()
    options: Any = {'initial_indent': '    ', 'subsequent_indent': '     '}
    return '\n'.join(textwrap.fill(x, 90, **options, break_on_hyphens=False) for x in lines)
