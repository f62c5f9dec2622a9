# Builds this package against the ROS wheels from PyPI. Read only where it is passed as
# CMAKE_PROJECT_INCLUDE (pyproject.toml, Makefile); with a ROS installation nothing reads it.

# A pip build installs the wheels into a temporary environment, anywhere on sys.path: ask Python.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(_print_prefix [[
import pathlib
import ament_package
parents = pathlib.Path(ament_package.__file__).parents
print(next(p for p in parents if (p / 'share' / 'ament_index').is_dir()))
]])
execute_process(
  COMMAND "${Python3_EXECUTABLE}" -c "${_print_prefix}"
  OUTPUT_VARIABLE _ros_prefix
  OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY
)
list(PREPEND CMAKE_PREFIX_PATH "${_ros_prefix}")
# The interface generators look their templates up in the ament index.
set(ENV{AMENT_PREFIX_PATH} "${_ros_prefix}")

# From lib/ and from lib/pythonX.Y/site-packages/hodyn_msgs/ to lib/, where the environment keeps
# all ROS libraries.
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../../..")

# The targets of the wheels name include folders of the machine that built the wheels. CMake
# refuses folders that do not exist, so they are taken out once all targets are imported.
function(hodyn_msgs_drop_missing_include_directories)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(directories ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(NOT directories)
      continue()
    endif()
    set(existing "")
    foreach(directory IN LISTS directories)
      # A generator expression cannot be checked here; the wheels use none for these folders.
      if(EXISTS "${directory}" OR directory MATCHES "\\$<")
        list(APPEND existing "${directory}")
      endif()
    endforeach()
    set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${existing}")
  endforeach()
endfunction()
cmake_language(DEFER CALL hodyn_msgs_drop_missing_include_directories)
