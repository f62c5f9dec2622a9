"""A controller in C beside the one in Python, and what may happen to a robot that both see."""

import ctypes

import numpy as np
from support.compilers import C_COMPILERS, WARNINGS, run
from support.control_cases import Condition

from hodyn_ros import HodynError, generate_code

T = 1e-3
FUSED = ('-O1', '-ffp-contract=fast', '-fno-math-errno')


class Compiled:
    """A controller in C; `command` as in Python, `status` what it last returned."""

    def __init__(self, library, name='robot'):
        self.library, self.name = library, name
        self.memory = ctypes.create_string_buffer(library.size())
        self.n = library.joints()
        self.status = 0
        self.reset()

    def reset(self):
        self.library[f'{self.name}_controller_reset'](self.memory)

    def command(self, *given, elapsed=T):
        given = [x if x is None else np.array(x, dtype=float) for x in given]
        pointers = [x if x is None else ctypes.c_void_p(x.ctypes.data) for x in given]
        torque = np.full(self.n, 1234.5)
        function = self.library[f'{self.name}_controller_evaluate']
        none = [None] * (6 - len(pointers))
        address = ctypes.c_void_p(torque.ctypes.data)
        self.status = function(
            self.memory, *pointers, *none, ctypes.c_double(elapsed), address
        )
        return torque


SIZES = """
#include "robot_dynamics.h"
#include <stddef.h>
size_t size(void);
int joints(void);
int reason(const robot_controller *controller);
int gated(const robot_controller *controller);
size_t size(void) { return sizeof(robot_controller); }
int reason(const robot_controller *controller) { return controller->reason; }
int gated(const robot_controller *controller) { return (int)controller->gated; }
int joints(void) { return ROBOT_N_JOINTS; }
"""


def build(controller, folder, options=FUSED):
    """Compile the code of a controller and load it."""
    _, source, *_ = generate_code(
        controller.model, folder, controller=controller, name='robot'
    )
    (folder / 'sizes.c').write_text(SIZES)
    shared = ('-std=c99', *WARNINGS, *options, '-shared', '-fPIC', '-o', folder / 'code.so')
    run(C_COMPILERS[0], *shared, source, folder / 'sizes.c', '-lm')
    return ctypes.CDLL(str(folder / 'code.so'))


def faults(name):
    """What happens to a robot that is followed, by the number of the sample."""
    brake = range(600, 800)
    return {
        'missing samples': {'elapsed': {k: 3 for k in range(400, 900, 7)}},
        'jitter': {'elapsed': {k: 1.0 + 0.3 * np.sin(k) for k in range(1, 1200)}},
        'glitches': {'wrong': {300: (3, 1.0), 400: (8, 0.15), 500: (2, np.nan)}},
        'slip': {'wrong': {k: (4, 0.1) for k in range(500, 1200)}},
        'slip that no spring bears': {'wrong': {k: (4, 0.3) for k in range(500, 600)}},
        'brake': {'locked': brake, 'release': 1400},
        'stop': {'stop': 500, 'release': 1000},
        'gap': {'elapsed': {600: 80}},
        'frozen motor': {'frozen': dict.fromkeys(range(600, 1200), 8)},
        'frozen motor behind a stop': {
            'frozen': dict.fromkeys(range(498, 1200), 9),
            'stop': 500,
        },
        'twice': {'repeated': range(500, 900, 20)},
        'silence': {'repeated': range(500, 520)},
        'untold gaps': {'missed': {500: 3, 600: 8}},
        'long untold gap': {'missed': {500: 20}},
        'clock': {'elapsed': {600: 0, 700: -1}},
    }[name]


def reason_number(controller):
    """Number of the reason in C for what Python says."""
    words = (
        'position of',
        'velocity',
        'tracking error',
        'external torque',
        'drive error',
        'cannot be true',
        'torque limit for',
        'max_gap',
        'deflection',
        'asked for',
        'stands still',
        'run away',
        'are the same',
    )
    found = [number for number, word in enumerate(words, 1) if word in controller.reason]
    return found[0] if found else 0


def meet(controller, library, name, wanted=None):
    """What stops a robot in both languages as something happens to it, by its number in C.

    `wanted(time)` is by default the motion of a `Condition`.
    """
    condition = Condition()
    c, plant, motion = Compiled(library), condition.plant(), condition.motion
    wanted = wanted or (lambda time: motion([time])[0])
    fault, seen, largest, error = faults(name), 0, 0.0, 0.0
    state = plant.at_rest(motion([0.0])[0, 0])
    given = wanted(controller.lead), state[0], None, state[2]
    under_way, stuck = [plant.torque] * controller.observer.delay_samples, {}
    for k in range(fault.get('release', 800) + 400):
        elapsed = fault.get('elapsed', {}).get(k, 1)
        time, q, theta = (k + max(elapsed - 1, 0)) * T, state[0].copy(), state[2].copy()
        if k in fault.get('repeated', ()):
            q, theta = given[1], given[3]
        if k in fault.get('frozen', {}):
            motor = fault['frozen'][k] % 7
            stuck.setdefault(motor, theta[motor])
            theta[motor] = stuck[motor]
        if k in fault.get('wrong', {}):
            place, by = fault['wrong'][k]
            (q if place < 7 else theta)[place % 7] += by
        if k == fault.get('stop'):
            controller.stop('asked for')
            library.robot_controller_stop(c.memory)
        given = wanted(time + controller.lead), q, None, theta, None
        torque = controller.command(*given, elapsed=elapsed * T)
        found = c.command(*given, elapsed=elapsed * T)
        is_repeated = k in fault.get('repeated', ())
        if not (is_repeated and controller.reason):
            assert c.status == (5 if elapsed <= 0 or is_repeated else 0)
        error, largest = (
            max(error, np.abs(found - torque).max()),
            max(largest, *abs(torque)),
        )
        seen = seen or reason_number(controller)
        assert library.reason(c.memory) == reason_number(controller)
        if k >= fault.get('release', 9999) and controller.reason:
            release(controller, c)
        under_way.append(torque)
        acts = under_way.pop(0)
        for _ in range(fault.get('missed', {}).get(k + 1, 0)):
            state = plant.hold(state, acts, T, 3)
        before, state = state, plant.hold(state, acts, T, 3)
        if k in fault.get('locked', ()):
            state[2], state[3] = before[2], 0.0
    assert error < 1e-9 * largest
    assert library.gated(c.memory) == controller.observer.gated
    return seen


def release(controller, c):
    """Let the robot follow again, in both languages or in none."""
    try:
        controller.release()
    except HodynError:
        assert c.library.robot_controller_release(c.memory) == 1
    else:
        assert c.library.robot_controller_release(c.memory) == 0
