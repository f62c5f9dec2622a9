"""Installation of hodyn_ros, for colcon and for pip."""

import os
import re
from glob import glob
from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = 'hodyn_ros'
# Address of the repository on GitHub, which only a publisher knows (RELEASING.md).
REPOSITORY = ''


def readme(repository):
    """README.md for PyPI, which has no files beside it: links lead to the repository."""
    text = Path('README.md').read_text(encoding='utf-8')
    if not repository:
        return text
    text = re.sub(r'(!\[[^]]*\]\()(?!https?:)', rf'\g<1>{repository}/raw/main/', text)
    return re.sub(r'(\]\()(?!https?:)', rf'\g<1>{repository}/blob/main/', text)


def data_files(*patterns):
    """Pairs of an installation directory and the files that go into it."""
    files = sorted(
        path for pattern in patterns for path in glob(pattern) if os.path.isfile(path)
    )
    directories = sorted({os.path.dirname(path) for path in files})
    return [
        (
            os.path.join('share', PACKAGE, directory),
            [path for path in files if os.path.dirname(path) == directory],
        )
        for directory in directories
    ]


# Of the long tests, beside those of `test`: large, or of use to few tests.
TEST_LONG = [
    'casadi>=3.6',
    'example-robot-data>=4.1',
    'pyarrow>=10.0',
    'pytest-cov>=4.0',
    'rerun-sdk>=0.39,<0.42',
    'sphinx>=5.0',
    'sphinx-rtd-theme>=1.2',
    'toppra>=0.6',
]

setup(
    name=PACKAGE,
    version='1.0.0',
    description='Joint torques of robots with their exact first and second time derivatives.',
    long_description=readme(REPOSITORY),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    license_files=['LICENSE'],
    author='The hodyn_ros contributors',
    maintainer='hodyn_ros maintainers',
    maintainer_email='maintainers@hodyn-ros.example',
    project_urls={'Source': REPOSITORY} if REPOSITORY else {},
    keywords=[
        'robotics',
        'ROS 2',
        'inverse dynamics',
        'time derivatives',
        'elastic joints',
        'torque rate',
        'trajectory',
        'system identification',
    ],
    classifiers=[
        'Development Status :: 4 - Beta',
        'Intended Audience :: Education',
        'Intended Audience :: Manufacturing',
        'Intended Audience :: Science/Research',
        'Operating System :: POSIX :: Linux',
        'Programming Language :: Python :: 3',
        'Programming Language :: Python :: 3 :: Only',
        'Programming Language :: Python :: 3.10',
        'Programming Language :: Python :: 3.11',
        'Programming Language :: Python :: 3.12',
        'Programming Language :: Python :: 3.13',
        'Topic :: Scientific/Engineering :: Physics',
        'Topic :: Software Development :: Libraries :: Python Modules',
        'Typing :: Typed',
    ],
    python_requires='>=3.10',
    packages=find_packages(include=[PACKAGE, PACKAGE + '.*']),
    package_data={
        PACKAGE: [
            'py.typed',
            'plotting/assets/*',
            'codegen/templates/*',
            'codegen/ros2_control/*.*',
            'codegen/ros2_control/*/*',
        ],
    },
    data_files=[
        ('share/ament_index/resource_index/packages', ['resource/' + PACKAGE]),
        ('share/' + PACKAGE, ['package.xml']),
        # The definitions go into bags, which explain themselves.
        *data_files('launch/*.py', 'config/*', 'urdf/*', 'hodyn_msgs/msg/*'),
    ],
    zip_safe=False,
    # Only names that a ROS installation knows as well: there the packages of package.xml provide
    # them, and scripts that still go through pkg_resources insist on every name listed here.
    install_requires=[
        'click>=8.0',
        'numba>=0.55',
        'numpy>=1.21',
        'PyYAML>=5.4',
        'rich>=11.0',
        'scipy>=1.8',
    ],
    extras_require={
        # ROS itself where it is not installed otherwise; requirements/jazzy.txt and kilted.txt
        # are constraints that name one distribution. hodyn_msgs is installed from its directory.
        'ros': [
            'ros-action-msgs',
            'ros-builtin-interfaces',
            'ros-diagnostic-msgs',
            'ros-geometry-msgs',
            'ros-rcl-interfaces',
            'ros-rclpy[fastrtps]',
            'ros-rosgraph-msgs',
            'ros-sensor-msgs',
            'ros-std-msgs',
            'ros-std-srvs',
            'ros-trajectory-msgs',
        ],
        # Tables in Parquet; bags of ROS 2, read and written without a ROS installation.
        'tables': ['pyarrow>=10.0'],
        'bags': ['rosbags>=0.11.9,<0.12'],
        'plot': ['matplotlib>=3.5'],
        'report': ['Jinja2>=3.0', 'plotly>=5.0'],
        # Robots in motion; its interface changes between minor versions. Python 3.10: 0.39.
        'view': ['rerun-sdk>=0.39,<0.42'],
        # Parameters of bodies that bodies can have, by a conic program.
        'identify': ['clarabel>=0.6'],
        # Robots with elastic joints on a simulator that shares no code with hodyn_ros.
        'simulation': ['mujoco>=3.3'],
        # Franka's own client; see examples/franka.
        'franka': ['matplotlib>=3.5', 'pylibfranka>=0.21.3'],
        # Data sets of many motions on a cluster.
        'cluster': ['dask[distributed]>=2022.1'],
        # Formulas as MathML need this docutils, and with it Python 3.11.
        'doc': ['docutils>=0.22', 'sphinx>=5.0', 'sphinx-rtd-theme>=1.2'],
        # What hodyn_ros is timed against.
        'bench': [
            'casadi>=3.6',
            'cmeel-eigen>=3.4',
            'jax>=0.4.30',
            'matplotlib>=3.5',
            'mujoco>=3.1',
            'pin>=3.0',
            'toppra>=0.6',
        ],
        # colcon test runs pytest only if this extra lists it.
        'test': [
            'catkin-pkg>=1.0',
            'clarabel>=0.6',
            'dask[distributed]>=2022.1',
            'docutils>=0.17',
            'hypothesis>=6.0',
            'Jinja2>=3.0',
            'matplotlib>=3.5',
            'mujoco>=3.3',
            'mypy>=1.8',
            'pin>=2.7',
            'plotly>=5.0',
            'pytest>=7.0',
            'pytest-xdist>=3.0',
            'rosbags>=0.11.9,<0.12',
            'ruff>=0.5',
        ],
        'test-long': [f'{PACKAGE}[test]', *TEST_LONG],
    },
    entry_points={
        'console_scripts': [
            'flatness_controller = hodyn_ros.commands:flatness_controller',
            'hodyn = hodyn_ros.commands:hodyn',
            'hodyn_node = hodyn_ros.commands:hodyn_node',
            'reference_publisher = hodyn_ros.commands:reference_publisher',
            'simulated_robot = hodyn_ros.commands:simulated_robot',
            'trajectory_proxy = hodyn_ros.commands:trajectory_proxy',
        ],
    },
)
