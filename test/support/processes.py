"""Code in a Python process of its own: imports, environments and ends that are its alone."""

from __future__ import annotations

import os
import subprocess
import sys


def run_python(
    code: str, *arguments: str, timeout: float = 600.0, **environment: str | None
) -> tuple[str, str]:
    """Output and messages of code that ends well in a fresh process.

    Variables of the environment are added to those that are here, or, if None, taken away.
    """
    variables = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, '-c', code, *arguments],
        env={name: value for name, value in variables.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr
