"""Data files are found however the package is installed."""

import pytest

from hodyn_ros import resources
from hodyn_ros.errors import HodynError, ResourceError

PYTHON_DIRECTORIES = {
    'virtual environment': 'venv/lib/python3.11/site-packages',
    'Debian': 'usr/lib/python3/dist-packages',
    'colcon on Ubuntu': 'install/hodyn_ros/local/lib/python3.10/dist-packages',
    'colcon --merge-install': 'install/lib/python3.12/site-packages',
    'pip install --target': 'target',
}
SHARE_DIRECTORIES = {
    'virtual environment': 'venv/share/hodyn_ros',
    'Debian': 'usr/share/hodyn_ros',
    'colcon on Ubuntu': 'install/hodyn_ros/share/hodyn_ros',
    'colcon --merge-install': 'install/share/hodyn_ros',
    'pip install --target': 'target/share/hodyn_ros',
}


def write(path, text=''):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def installed_at(monkeypatch, tmp_path):
    """Pretend that the module lies in a directory below tmp_path."""

    def install(python_directory):
        module = tmp_path / python_directory / 'hodyn_ros' / 'resources.py'
        if not module.exists():
            write(module)
        monkeypatch.setattr(resources, '__file__', str(module))

    return install


@pytest.mark.every_case
@pytest.mark.parametrize('layout', PYTHON_DIRECTORIES)
def test_file_is_found_in_layout(layout, installed_at, tmp_path):
    expected = write(tmp_path / SHARE_DIRECTORIES[layout] / 'urdf' / 'arm.urdf')
    installed_at(PYTHON_DIRECTORIES[layout])
    assert resources.share_file('urdf/arm.urdf') == expected


def test_file_is_found_in_source_checkout(installed_at, tmp_path):
    write(tmp_path / 'checkout' / 'package.xml')
    expected = write(tmp_path / 'checkout' / 'urdf' / 'arm.urdf')
    installed_at('checkout')
    assert resources.share_file('urdf/arm.urdf') == expected


def test_file_is_found_through_links_of_a_symlink_install(installed_at, tmp_path):
    source = tmp_path / 'src' / 'hodyn_ros'
    write(source / 'package.xml')
    write(source / 'hodyn_ros' / 'resources.py')
    expected = write(source / 'urdf' / 'arm.urdf')
    build = tmp_path / 'build' / 'hodyn_ros'
    build.mkdir(parents=True)
    (build / 'hodyn_ros').symlink_to(source / 'hodyn_ros')
    installed_at('build/hodyn_ros')
    assert resources.share_file('urdf/arm.urdf') == expected


def test_missing_file_is_an_error_that_names_it_and_its_neighbours(installed_at, tmp_path):
    write(tmp_path / 'venv/share/hodyn_ros/urdf/arm.urdf')
    installed_at('venv/lib/python3.11/site-packages')
    with pytest.raises(ResourceError) as error:
        resources.share_file('urdf/leg.urdf')
    message = str(error.value)
    assert 'urdf/leg.urdf' in message
    assert str(tmp_path / 'venv' / 'share' / 'hodyn_ros') in message
    assert 'urdf/arm.urdf' in message


@pytest.mark.every_case
@pytest.mark.parametrize('path', ['/etc/hostname', '../package.xml', 'urdf/../../secret'])
def test_path_outside_of_the_data_directory_is_refused(path):
    with pytest.raises(HodynError, match='below the data directory'):
        resources.share_file(path)
