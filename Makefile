# Builds, tests and runs hodyn_ros on a machine without ROS: the ROS libraries come from PyPI.
# With a ROS installation, use colcon in a workspace instead.

PYTHON ?= python3
# The ROS distribution whose wheels are installed, a file of requirements/.
DISTRO := jazzy
VENV := $(if $(filter jazzy,$(DISTRO)),.venv,.venv-$(DISTRO))
COLCON_VENV := .venv-colcon
FRANKA_VENV := .venv-franka
BENCH := quick
# One more than there are processors, since tests of nodes mostly wait. More than four hold each
# other up: such a test has several processes.
PROCESSES := $(shell expr $$(nproc) + 1)
IN_PARALLEL := -n $(PROCESSES) --maxprocesses 4 --dist loadfile --no-loadscope-reorder
SOAK := 600
PATHS := 100
# Two things at a time, each told as it begins.
BESIDE = +@$(MAKE) --no-print-directory --jobs 2

MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The environments below are complete. What a sourced ROS setup, an active environment or a Python
# process of another environment leaves in the shell would mix foreign modules and libraries in.
unexport AMENT_PREFIX_PATH AMENT_CURRENT_PREFIX AMENT_TRACE_SETUP_FILES
unexport CMAKE_PREFIX_PATH COLCON_PREFIX_PATH COLCON_CURRENT_PREFIX COLCON_DEFAULTS_FILE
unexport COLCON_HOME COLCON_LOG_PATH COLCON_EXTENSION_BLOCKLIST COLCON_LOG_LEVEL
unexport CONDA_PREFIX LD_LIBRARY_PATH PYTHONHOME PYTHONPATH PYTHONSTARTUP VIRTUAL_ENV
unexport ROS_DISTRO ROS_LOCALHOST_ONLY ROS_DISCOVERY_SERVER ROS_STATIC_PEERS RMW_IMPLEMENTATION
unexport FASTRTPS_DEFAULT_PROFILES_FILE FASTDDS_DEFAULT_PROFILES_FILE
unexport RMW_FASTRTPS_USE_QOS_FROM_XML RMW_FASTRTPS_PUBLICATION_MODE
# Tests start hundreds of processes; without byte code each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
unexport PYTEST_ADDOPTS _ROS_WHEELS_BOOTSTRAP_COMPLETE
# Nodes that tests and the demo start do not meet those of other machines.
export ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Directories are listed too, since a removed file changes nothing but its directory.
files_of = $(shell find $(1) -name __pycache__ -prune -o -print 2>/dev/null)
MSGS_SOURCES := $(call files_of,hodyn_msgs)
# What an installation is made from; the modules themselves are used where they stand.
PACKAGE_SOURCES := package.xml setup.py setup.cfg pyproject.toml requirements/$(DISTRO).txt
EXAMPLES := two_link_arm iiwa panda_second_order panda_higher_order

##@ Targets

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ": .*## "} /^[a-z-]+: .*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile
	@echo "For another Python than python3: make clean, then make PYTHON=python3.12 TARGET"
	@echo "For another ROS than Jazzy: make DISTRO=kilted TARGET"

.PHONY: venv
venv: ## Set up .venv with ROS, hodyn_msgs, hodyn_ros and the test tools
	$(BESIDE) $(VENV)/test.ready

.PHONY: test
test: venv ## Set up, check style and types and run all tests but the long ones (5 minutes)
	$(BESIDE) check-style run-tests

.PHONY: lint
lint: venv ## Set up and check style and types
	$(BESIDE) check-style

.PHONY: test-long
test-long: ## Set up and run all tests, with more examples, and measure the coverage of lines
	$(BESIDE) $(VENV)/test-long.ready $(FRANKA_VENV)/ready.stamp
	$(VENV)/bin/pytest -m '' $(IN_PARALLEL) --cov
	$(MAKE) --no-print-directory DISTRO=kilted test-nodes

.PHONY: test-nodes
test-nodes: venv ## Set up and run the tests of nodes (DISTRO=kilted: with that ROS)
	$(VENV)/bin/pytest $(IN_PARALLEL) test/ros test/contract

# Both are started by other targets, once there is an environment.
.PHONY: check-style run-tests
check-style:
	$(VENV)/bin/ruff check --quiet
	$(VENV)/bin/ruff format --check --quiet
	$(VENV)/bin/mypy

run-tests:
	$(VENV)/bin/pytest $(IN_PARALLEL)

.PHONY: demo
demo: plot ## Set up, run the Panda node on real topics and draw build/demo/panda_efforts.png
	@echo 'Running the node: 20 s.'
	$(VENV)/bin/python examples/panda_demo.py

.PHONY: demo-sea
demo-sea: plot ## Set up, compare control laws of a Panda with elastic joints into build/demo_sea
	$(PIP) 'pin>=2.7'
	$(VENV)/bin/python -m benchmarks laws -o build/demo_sea

.PHONY: demo-franka
demo-franka: franka ## Set up, move a simulated FR3 by Franka's own interface and draw build/demo_franka
	@echo 'Moving the robot: 80 s.'
	$(VENV)/bin/python examples/franka/demo.py

.PHONY: bench-franka
bench-franka: franka ## Set up and time 100 random paths of that FR3 in six ways, or go on (PATHS=30: half an hour)
	$(PIP) --editable '.[bench]' 'ruckig>=0.15'
	$(VENV)/bin/python examples/franka/table.py --paths $(PATHS)

.PHONY: examples
examples: plot ## Set up, recompute examples of the papers and draw them into build/examples
	for name in $(EXAMPLES); do \
	  $(VENV)/bin/python examples/$$name.py --picture build/examples/$$name.png || exit; \
	done

.PHONY: bench
bench: venv ## Set up and time hodyn_ros beside other tools into build/bench (BENCH=full: longer)
	$(PIP) --editable '.[bench]'
	$(VENV)/bin/python -m benchmarks --size $(BENCH)

.PHONY: soak
soak: venv ## Set up and run a node under all faults for ten minutes (with DISTRO=kilted; SOAK=60: seconds)
	$(VENV)/bin/python test/soak.py --seconds $(SOAK)

.PHONY: pictures
pictures: venv ## Set up and draw pictures of pages into doc/images
	$(VENV)/bin/python doc/make_pictures.py
	$(VENV)/bin/python doc/make_gallery.py

.PHONY: notebooks
notebooks: venv ## Set up, run the notebooks and store what they print and draw
	$(VENV)/bin/python doc/run_examples.py examples/notebooks/*.ipynb

.PHONY: media
media: pictures film ## Both, from nothing

.PHONY: film
film: venv ## Set up and draw the films of the pages into doc/images
	$(VENV)/bin/python doc/make_film.py

.PHONY: doc
doc: venv ## Set up and build the documentation into build/doc
	$(PIP) --editable '.[doc]'
	$(VENV)/bin/sphinx-build -q -W -b html doc build/doc
	@echo 'Open build/doc/index.html'

.PHONY: colcon
colcon: $(COLCON_VENV)/ready.stamp ## Build and test both packages with colcon, in an environment of its own
	$(call in_colcon_venv,colcon build --cmake-args $(COLCON_CMAKE_ARGS))
	$(call in_colcon_venv,colcon test --event-handlers console_cohesion+ console_stderr-)
	$(call in_colcon_venv,colcon test-result --verbose) > build/test_result.txt; \
	status=$$?; cat build/test_result.txt; exit $$status
	@grep -q '^Summary: [1-9]' build/test_result.txt || $(call fail,colcon ran no tests)

.PHONY: clean
clean: ## Remove everything that the other targets made
	rm -rf .venv .venv-* build install log *.egg-info
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- Environments -----------------------------------------------------------------------------

fail = { echo "error: $(1)" >&2; exit 1; }
# A message with commas would fall apart as an argument of $(call), so these are variables.
NO_PYTHON = $(PYTHON) was not found. Install Python 3.10 or newer (Debian, Ubuntu: apt install \
  python3 python3-venv python3-dev) or name yours: make PYTHON=/path/to/python3
OLD_PYTHON = $(PYTHON) is too old: Python 3.10 or newer is needed. Name a newer one: make \
  PYTHON=python3.12
NO_VENV = $(PYTHON) cannot create virtual environments (Debian, Ubuntu: apt install python3-venv)
NO_COMPILER = no C and C++ compiler was found; hodyn_msgs needs both (Debian, Ubuntu: apt \
  install g++, or set CC and CXX)
NO_HEADERS = the headers of $(PYTHON) are missing; hodyn_msgs needs them (Debian, Ubuntu: apt \
  install python3-dev)
NO_WHEELS = the ROS wheels on PyPI are made for Linux on x86_64 only. On other machines install \
  ROS 2 and build with colcon

# Runs in a new environment made by $(PYTHON).
define create_venv
@command -v $(PYTHON) > /dev/null || $(call fail,$(NO_PYTHON))
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || $(call fail,$(OLD_PYTHON))
@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || $(call fail,$(NO_VENV))
rm -rf $(1)
$(PYTHON) -m venv $(1)
endef

define check_compiler
@test "$$(uname -sm)" = 'Linux x86_64' || $(call fail,$(NO_WHEELS))
@command -v "$${CC:-cc}" > /dev/null && command -v "$${CXX:-c++}" > /dev/null \
  || $(call fail,$(NO_COMPILER))
@$(1)/bin/python -c 'import pathlib, sysconfig; \
  (pathlib.Path(sysconfig.get_path("include")) / "Python.h").stat()' 2> /dev/null \
  || $(call fail,$(NO_HEADERS))
endef

$(VENV)/created.stamp:
	$(call create_venv,$(VENV))
	@touch $@

# pip reads these; newer versions ask for the second one where they build.
export PIP_CONSTRAINT := requirements/$(DISTRO).txt
export PIP_BUILD_CONSTRAINT := $(PIP_CONSTRAINT)
# What is imported is compiled to byte code then; the rest of a gigabyte need not be.
PIP = $(VENV)/bin/pip install --quiet --no-compile

# Messages for Python alone, without optimisation: a fifth of what a robot's build takes. They are
# built while the environment is installed.
WHEELS := build/wheels/$(DISTRO)
$(WHEELS)/msgs.stamp: $(VENV)/created.stamp $(MSGS_SOURCES)
	$(call check_compiler,$(VENV))
	@echo 'Building hodyn_msgs, beside: 30 s of one processor.'
	@rm -rf $(WHEELS)
	@SKBUILD_CMAKE_BUILD_TYPE=None SKBUILD_CMAKE_DEFINE=HODYN_MSGS_FOR_PYTHON=ON \
	  $(VENV)/bin/pip wheel --quiet --no-deps --wheel-dir $(WHEELS) ./hodyn_msgs
	@touch $@

# What a target needs beside ROS and the package is the extra of its name in setup.py. The package
# is used where it stands, so what changes in its modules needs no installation.
$(VENV)/%.stamp: $(VENV)/created.stamp $(PACKAGE_SOURCES)
	@echo 'Installing ROS, hodyn_ros and what make $* needs: $(DOWNLOADS_$*).'
	@rm -rf $(VENV)/lib/python*/site-packages/hodyn_ros  # of an installation that was a copy
	@$(PIP) --editable '.[ros,$*]'
	@touch $@

DOWNLOADS_franka := 170 MB, 25 s and the downloads
DOWNLOADS_plot := 160 MB, 20 s and the downloads
DOWNLOADS_test := 700 MB, 40 s and the downloads
DOWNLOADS_test-long := 2.5 GB, 90 s and the downloads

.PRECIOUS: $(VENV)/%.stamp
$(VENV)/%.ready: $(VENV)/%.stamp $(WHEELS)/msgs.stamp
	@$(PIP) --no-deps --force-reinstall $(WHEELS)/*.whl
	@touch $@

.PHONY: plot
plot:
	$(BESIDE) $(VENV)/plot.ready

# The robot has an environment of its own: franka-sim needs an older NumPy and an older MuJoCo.
.PHONY: franka
franka:
	$(BESIDE) $(VENV)/franka.ready $(FRANKA_VENV)/ready.stamp

$(FRANKA_VENV)/ready.stamp:
	$(call create_venv,$(FRANKA_VENV))
	@echo 'Installing the simulated robot: 180 MB, 20 s and the downloads.'
	@$(FRANKA_VENV)/bin/pip install --quiet --no-compile 'franka-sim==1.1.7' 'mujoco<3.3' 'numpy<2'
	@touch $@

# hodyn_ros itself and hodyn_msgs are not installed here: colcon builds them.
$(COLCON_VENV)/ready.stamp: setup.py hodyn_msgs/pyproject.toml
	$(call create_venv,$(COLCON_VENV))
	$(call check_compiler,$(COLCON_VENV))
	@echo 'Installing ROS and colcon; this takes about a minute.'
	$(COLCON_VENV)/bin/pip install --quiet '.[ros,test]' build colcon-common-extensions
	$(COLCON_VENV)/bin/pip uninstall --quiet --yes hodyn_ros
	$(COLCON_VENV)/bin/python -c 'import build; \
	  print(*build.ProjectBuilder("hodyn_msgs").build_system_requires, sep="\n")' \
	  > $(COLCON_VENV)/requirements.txt
	$(COLCON_VENV)/bin/pip install --quiet --requirement $(COLCON_VENV)/requirements.txt
	command -v cmake > /dev/null || $(COLCON_VENV)/bin/pip install --quiet cmake
	@touch $@

in_colcon_venv = VIRTUAL_ENV='$(CURDIR)/$(COLCON_VENV)' \
  PATH='$(CURDIR)/$(COLCON_VENV)/bin':"$$PATH" $(1)
COLCON_CMAKE_ARGS = -DCMAKE_PROJECT_INCLUDE='$(CURDIR)/hodyn_msgs/cmake/ros_wheels.cmake' \
  -DPython3_EXECUTABLE='$(CURDIR)/$(COLCON_VENV)/bin/python' -DCMAKE_BUILD_TYPE=Release
