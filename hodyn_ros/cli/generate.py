"""`hodyn generate`: inverse dynamics of one robot as source code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hodyn_ros.cli.options import robot_options


@click.command()
@robot_options
@click.option(
    '-o', '--output', type=click.Path(path_type=Path), default=None, metavar='FOLDER',
    help='Made if it does not exist; by default <robot>_dynamics, or <name>_dynamics.',
)
@click.option(
    '--language', type=click.Choice(['c', 'cpp']), default='c', show_default=True,
    help='C99 or C++11.',
)
@click.option(
    '--order', 'orders', type=click.IntRange(0, 2), multiple=True,
    help='Highest time derivative of the torques: functions for all orders up to it. Repeated: '
    'for these orders only.  [default: 2]',
)
@click.option(
    '--precision', type=click.Choice(['double', 'float']), default='double', show_default=True,
    help='Type of the numbers.',
)
@click.option('--name', help='Begins all names in the code; by default that of the robot.')
@click.option(
    '--wrench', 'wrench_links', multiple=True, metavar='LINK',
    help='Link on which a wrench acts; may be repeated.',
)
@click.option('--force', is_flag=True, help='Replace files that were not generated.')
def command(
    choice: Any, output: Path | None, language: str, orders: tuple[int, ...], precision: str,
    name: str | None, wrench_links: tuple[str, ...], force: bool,
) -> None:  # fmt: skip
    """Write the inverse dynamics of ROBOT as C or C++ code, which needs no library.

    Beside it is a test with reference values and a CMakeLists.txt.

    For example
      hodyn generate panda -o panda_c --wrench panda_link8
      hodyn generate robot.urdf --language cpp --order 1
    """
    from hodyn_ros.cli.robots import load_model
    from hodyn_ros.engine.c_statements import identifier
    from hodyn_ros.engine.generate import generate_code
    from hodyn_ros.errors import RequestError

    model, _ = load_model(choice)
    # Robots of different files may have the same name inside.
    robot = Path(choice.robot.rpartition(':')[2]).stem
    folder = output or Path(f'{name or identifier(robot)}_dynamics')
    wanted = orders if len(orders) > 1 else (orders[0] if orders else 2)
    try:
        paths = generate_code(
            model, folder, language, wanted, precision, name, wrench_links, force
        )
    except RequestError as error:
        raise RequestError(str(error).replace('overwrite=True', '--force')) from error
    for path in paths:
        click.echo(path)
    click.echo(
        f'Try it: cmake -S {folder} -B {folder}/build && cmake --build {folder}/build '
        f'&& ctest --test-dir {folder}/build', err=True,
    )  # fmt: skip
