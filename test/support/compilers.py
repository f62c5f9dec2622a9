"""Compilers of C and C++ for generated code."""

import shutil
import subprocess

WARNINGS = ('-Wall', '-Wextra', '-Wconversion', '-pedantic', '-Werror')
C_COMPILERS = [name for name in ('gcc', 'clang') if shutil.which(name)]
CPP_COMPILERS = [name for name in ('g++', 'clang++') if shutil.which(name)]


def run(*command):
    """What a command prints, if it succeeds."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
