"""A controller in C, built and called as its header says."""

import ctypes

import numpy as np
from support.compilers import C_COMPILERS, WARNINGS, run

from hodyn_ros import generate_code

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
size_t size(void) { return sizeof(robot_controller); }
int reason(const robot_controller *controller) { return controller->reason; }
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
