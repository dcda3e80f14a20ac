# The commands of the project; `make help` lists them. Each sets up what it needs by itself.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PRESET ?= dev
JOBS ?= $(shell nproc)
MINUTES ?= 10
PYTHON := .venv/bin/python

.PHONY: help setup build install demo test test-sanitizers bench bench-quick soak format lint clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

setup:  ## Debian packages, .venv with the pinned Python packages; quick when nothing is missing
	@tools/setup.sh

build: setup  ## C++ of PRESET (dev, release, asan-ubsan, tsan, fuzz) into build/PRESET/bin
	@cmake --preset $(PRESET) --log-level=WARNING
	@cmake --build --preset $(PRESET) -j $(JOBS)

install: setup  ## torch_cais into .venv
	@tools/install_torch_cais.sh

demo: install  ## trains a tensor-parallel transformer through gloo and through cais (4 minutes)
	@$(PYTHON) demo/run.py $(ARGS)

test: install  ## all tests: C++, Python, each fuzz target for seconds; ends with "N passed, N failed"
	@$(PYTHON) tools/test.py --jobs $(JOBS) $(ARGS)

test-sanitizers: install  ## the same, and the C++ tests under ASan + UBSan and TSan (an hour)
	@$(PYTHON) tools/test.py --jobs $(JOBS) --sanitizers $(ARGS)

bench: install  ## the benchmark tables beside the peers, compared with bench/baselines (two hours)
	@$(PYTHON) bench/run.py $(ARGS)

bench-quick: install  ## the same with few sizes and rounds (minutes)
	@$(PYTHON) bench/run.py --quick $(ARGS)

soak: install  ## 10^7 states, 24 simulated hours, then all tests again and again for MINUTES (10)
	@$(PYTHON) tools/test.py --jobs $(JOBS) --soak-minutes $(MINUTES) $(ARGS)

format: setup  ## clang-format over all C++
	@tools/format.sh

lint: setup  ## clang-format as a check, clang-tidy, shell and Python syntax
	@tools/lint.sh

clean:  ## removes build/ and what was installed into the source tree; keeps .venv
	@rm -rf build demo-out torch_cais/_C*.so torch_cais/_lib
