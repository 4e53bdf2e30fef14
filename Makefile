# Two commands do everything on a fresh machine: `make demo` and `make test`. `make help` lists the rest.
# ROS=kilted: that distribution's wheels, in an environment of their own beside Jazzy's.
ROS ?= jazzy
VENV := $(if $(filter jazzy,$(ROS)),.venv,.venv-$(ROS))
BIN := $(VENV)/bin
PYTHON ?=

# Left by the ROS wheels of another virtual environment, these would make this one load the other's libraries.
ifdef _ROS_WHEELS_BOOTSTRAP_COMPLETE
unexport _ROS_WHEELS_BOOTSTRAP_COMPLETE LD_LIBRARY_PATH
endif
# Without compiled modules every start of a process would take seconds.
unexport PYTHONDONTWRITEBYTECODE
# Two test processes share the cores; threads of their own would only fight.
export OMP_NUM_THREADS ?= 1
export OMP_WAIT_POLICY ?= passive

.PHONY: help setup demo test lint lint-pythons format bench drives soak faults fuzz clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    set up, then show the whole thing on a live ROS 2 graph"
	@echo "make test    set up, then check style and types and run all tests"
	@echo "make test ROS=kilted   the tests that need ROS, on the wheels of ROS 2 Kilted in .venv-kilted"
	@echo "make setup   only bring .venv up to date   make setup LOCKED=1  with exactly the archives of the release"
	@echo "make lint    style, imports, types          make format  rewrite to the style"
	@echo "make lint-pythons   syntax, standard library and wheels for Python 3.10 to 3.14"
	@echo "make bench   speed and memory              make soak    an hour at 80% load: growth, lost frames"
	@echo "make drives  whole drives: every rule, shown wrongly and why, after changes   ARGS=\"--seeds 1-6\""
	@echo "make faults  broken input, dying nodes, wrong clocks, full disks"
	@echo "make fuzz    atheris on every parser, SECONDS=60 each"
	@echo "make clean   remove .venv and everything built"

setup:
	@PYTHON="$(PYTHON)" LOCKED="$(LOCKED)" ROS="$(ROS)" sh tools/setup.sh

demo: setup
	@$(BIN)/lla-fusion demo $(ARGS)

# Style and types are the same everywhere; on another distribution than Jazzy the tests that need ROS run.
ROS_TESTS := test/ros test/launch test/messages test/security test/faults
ifeq ($(ROS),jazzy)
test: lint
	@$(BIN)/python -m pytest -n 2 --dist worksteal -q $(ARGS)
else
test: setup
	@$(BIN)/python -m pytest -n 2 --dist worksteal -q $(or $(ARGS),$(ROS_TESTS))
endif

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/python tools/check_imports.py
	@$(BIN)/mypy

lint-pythons: setup
	@$(BIN)/python tools/check_pythons.py $(ARGS)

format: setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: setup
	@PYTHONPATH=. $(BIN)/python -m bench $(ARGS)

drives: setup
	@PYTHONPATH=. $(BIN)/python -m bench.drives $(ARGS)

soak: setup
	@PYTHONPATH=. $(BIN)/python -m bench.soak $(ARGS)

faults: setup
	@PYTHONPATH=test:. $(BIN)/python -m faults $(ARGS)

fuzz: setup
	@$(BIN)/python test/fuzz/__main__.py --seconds $(or $(SECONDS),60) $(ARGS)

clean:
	rm -rf .venv .venv-* build install log demo_out *.egg-info .mypy_cache .ruff_cache .pytest_cache
