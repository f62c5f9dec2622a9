"""The command `hodyn` as ``python -m hodyn_ros``."""

from hodyn_ros.cli.main import main

if __name__ == '__main__':
    main()
