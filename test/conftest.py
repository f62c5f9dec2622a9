"""What holds for all tests, set before any of their modules is imported."""

import os
import signal

# Several test processes share the cores; threads of BLAS in each would wait for one another.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

# A shell that runs the tests in the background has them ignore Ctrl-C, and so all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
