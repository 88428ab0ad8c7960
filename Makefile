# SPDX-License-Identifier: GPL-2.0-or-later
# Every target has one line in `make help`: what stands behind ## after its name. V=1 shows the commands.
ifneq ($(V),1)
.SILENT:
endif
.DEFAULT_GOAL := help

VENV := build/venv
VSPROF := $(VENV)/bin/vsprof
READY := build/ready build/uarch_model/uarch_model.so
EXPERIMENTS := $(basename $(notdir $(wildcard experiments/*.yaml)))

TESTBED ?= auto
RUN ?= latest
# Each variable that is set becomes the option of the same meaning.
OPTIONS := --testbed $(TESTBED) $(if $(SWITCHES),--switches "$(SWITCHES)") $(if $(FRAMES),--frame-size "$(FRAMES)") \
	$(if $(FLOWS),--num-flows "$(FLOWS)") $(if $(LOADS),--loads "$(LOADS)") $(if $(REPEAT),--repeat $(REPEAT)) $(if $(COLLECTORS),--collectors "$(COLLECTORS)") \
	$(if $(DURATION),--duration $(DURATION)) $(if $(SEED),--seed $(SEED)) $(if $(CPU),--cpu-profile "$(CPU)") \
	$(if $(INVENTORY),--inventory "$(INVENTORY)") $(if $(SERVER),--server "$(SERVER)") $(if $(ACCEL),--accel $(ACCEL)) $(if $(CLOCK),--clock $(CLOCK)) $(if $(filter 1,$(TUNE)),--tune) $(if $(filter 1,$(V)),--verbose)

.PHONY: help
help: ## Show this list
	echo "vsprof: why is one virtual switch faster than another?"
	echo
	echo "Experiments (experiments/*.yaml): a target runs one and writes its report. profile-vm2vm and profile-vm2host are vm2vm and vm2host."
	for one in $(EXPERIMENTS); do awk -v name=$$one -f tools/question.awk experiments/$$one.yaml; done
	echo
	echo "Other targets:"
	grep -hE '^[a-z][a-z0-9%-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([^:]+):.*## (.*)/\1\t\2/' | awk -F'\t' '{ printf "  %-18s %s\n", $$1, $$2 }'
	echo
	echo "Variables: TESTBED=auto|lab|native|remote  INVENTORY=  SERVER=  ACCEL=tcg|kvm  CLOCK=emulated|modelled  SWITCHES=  FRAMES=  FLOWS=  LOADS=  REPEAT=  DURATION=  COLLECTORS=  CPU=  EVENTS=  SEED=  RUN=  TUNE=1  V=1"

.PHONY: setup
setup: $(READY) ## Install what vsprof needs (Python packages in build/venv, and Debian packages, which it names first)

# A hash of what is to be installed, so that a second call installs nothing, and a changed pin does.
build/ready: requirements.txt pyproject.toml tools/setup
	tools/setup $(VENV)
	touch $@

# The processor model. It has a compiler from the step before.
build/uarch_model/uarch_model.so: build/ready $(wildcard collectors/uarch_model/*.[chS]) collectors/uarch_model/Makefile
	$(MAKE) --no-print-directory -s -C collectors/uarch_model
	touch $@

.PHONY: toplev
toplev: $(READY) ## Install toplev for the collector of that name; Intel's processors only (PERFMON=clone of Intel's perfmon)
	tools/setup-toplev $(VENV)/bin/python build/toplev build/toplev-events "$(PERFMON)"

# A target for each experiment; the two of whole systems are called profile-vm2vm and profile-vm2host, too.
RUNS := $(EXPERIMENTS) profile-vm2vm profile-vm2host
.PHONY: $(RUNS)
$(RUNS): $(READY)
	$(VSPROF) run $(@:profile-%=%) $(OPTIONS)

.PHONY: report
report: $(READY) ## Rebuild a result's report from what is stored (RUN=latest)
	$(VSPROF) report $(RUN)

.PHONY: show
show: $(READY) ## Print a result's summary (RUN=latest)
	$(VSPROF) show $(RUN)

.PHONY: notebook
notebook: $(READY) build/ready-for-jupyter ## Open a copy of a result's notebook in Jupyter (RUN=latest)
	$(VSPROF) notebook $(RUN)

build/ready-for-jupyter: build/ready tools/jupyter-requirements.txt
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tools/jupyter-requirements.txt
	touch $@

.PHONY: sweep-ready
sweep-ready: build/ready-to-sweep ## Install Snakemake, which `vsprof sweep` needs

build/ready-to-sweep: build/ready tools/sweep-requirements.txt
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tools/sweep-requirements.txt
	touch $@

.PHONY: pages
pages: $(READY) ## Fill the numbers of README and docs/ in from results (RUN="reference latest")
	$(VENV)/bin/python -m vsprof.analysis.pages $(foreach run,$(RUN),results/$(run))

.PHONY: resume
resume: $(READY) ## Go on with the newest campaign where it stopped
	$(VSPROF) run --resume $(if $(filter 1,$(V)),--verbose)

.PHONY: doctor
doctor: $(READY) ## Say what this host can measure, and what to do about the rest
	$(VSPROF) doctor

.PHONY: events
events: $(READY) ## List the PMU events and metrics that this host can count (EVENTS=file of your own)
	$(VSPROF) events $(if $(EVENTS),--events "$(EVENTS)")

.PHONY: host
host: $(READY) ## Prepare the servers of an inventory over SSH (INVENTORY=file)
	$(VSPROF) host $(if $(INVENTORY),--inventory "$(INVENTORY)")

.PHONY: unhost
unhost: $(READY) ## Take back what `make host` did to them (INVENTORY=file); CHECK=1 only says what that would be
	$(VSPROF) unhost $(if $(INVENTORY),--inventory "$(INVENTORY)") $(if $(filter 1,$(CHECK)),--check)

# Groups of tests by their marks. The first two run beside each other: the lab's tests build its image, and take longest. The others have two
# processes, each with whole files, for what files share: they fill whatever the lab leaves of two CPUs. Those of switches on this host come
# last and alone: their processes spin, and beside other work frames came later than tests wait. Two processes for the lab's as well gained
# nothing: together the groups are busy for as long as two CPUs are.
# Those marked `long` are for test-all; LONG_MINUTES after the beginning no more of them are begun (tests/conftest.py).
NOT_LONG := $(if $(filter 1,$(LONG)),, and not long)
MARKS_lab := lab$(NOT_LONG)
MARKS_others := not (lab or native or dataplane)$(NOT_LONG)
MARKS_switches := (native or dataplane) and not lab$(NOT_LONG)
UNTIL = $(if $(LONG_MINUTES),VSPROF_LONG_UNTIL=$$(($$(stat -c %Y $(TESTED)/begun) + 60 * $(LONG_MINUTES))))
NICE_lab := nice -n 5
NICE_others := nice -n 10
MORE_others := -n 2 --dist loadfile
BESIDE := lab others
GROUPS := $(BESIDE) switches
TESTED := build/tested

.PHONY: test
test: $(READY) ## Run the tests, a small real experiment in the lab included: 20 minutes
	rm -rf $(TESTED) && mkdir -p $(TESTED) && touch $(TESTED)/begun
	$(MAKE) --no-print-directory -j2 $(BESIDE:%=test-group-%)
	$(MAKE) --no-print-directory test-group-switches
	$(if $(NOT_LONG),@echo "The tests marked 'long' were left out; \`make test-all\` runs them as well.")
	$(VENV)/bin/python tools/test_summary.py $(TESTED) $(GROUPS)

.PHONY: test-all
test-all: ## Run all tests, also those marked long: 45 minutes (LONG_MINUTES=50: begin none of these later than that)
	$(MAKE) --no-print-directory test LONG=1

# What is fetched for these comes while the lab's image is built.
test-group-others: build/ready-to-sweep try-to-fuzz

.PHONY: try-to-fuzz
try-to-fuzz:
	-$(MAKE) --no-print-directory build/ready-to-fuzz # where clang can't be installed, the tests that need it say so

# It never fails, so that the other groups go on: the summary does. Tests call make themselves, which must not hear of this one's options.
.PHONY: $(GROUPS:%=test-group-%)
$(GROUPS:%=test-group-%): test-group-%:
	{ env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(UNTIL) $(NICE_$*) $(VENV)/bin/python -m pytest -m "$(MARKS_$*)" $(MORE_$*) --junitxml=$(TESTED)/$*.xml; \
		echo $$? > $(TESTED)/$*.status; } 2>&1 | tee $(TESTED)/$*.log | sed -u 's/^/$*: /'

.PHONY: test-fast
test-fast: $(READY) ## Run the tests that need neither the lab nor its image, but for the long ones
	$(VENV)/bin/python -m pytest --durations=10 $(MORE_others) -m "$(MARKS_others)"

.PHONY: test-host
test-host: $(READY) ## Prepare a bare emulated server, measure on it, take it back (long: see docs/testbeds/remote.md)
	VSPROF_TEST_HOST=1 $(VENV)/bin/python -m pytest tests/host -s

.PHONY: fuzz
fuzz: build/ready-to-fuzz ## Fuzz vhost-switch: rings, addresses, parsers, messages (FUZZ_SECONDS=60 for each of seven)
	$(MAKE) --no-print-directory -C dataplane fuzz BUILD=$(CURDIR)/build/fuzz FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60)
	VSPROF_FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60) VSPROF_FUZZ_BUILD=$(CURDIR)/build/fuzz $(VENV)/bin/python -m pytest -s \
		tests/dataplane/test_fuzz.py tests/dataplane/test_sequences.py -k "short_run_with_dpdk or conversation"

.PHONY: soak
soak: $(READY) ## Kill a small campaign at random moments, and look whether anything is lost or left (TESTBED=native|lab, ROUNDS=70, SEED=)
	$(VENV)/bin/python -m vsprof.bench.soak $(if $(filter-out auto,$(TESTBED)),--testbed $(TESTBED)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED))

build/ready-to-fuzz: build/ready tools/setup
	tools/setup $(VENV) fuzz
	touch $@

# Not part of `make test`: Debian starts the services of packages that it installs, munge's here.
.PHONY: test-tools
test-tools: build/ready ## Install what some tests are skipped without: clang's libFuzzer, shellcheck, Slurm and munge
	tools/setup $(VENV) tests

.PHONY: bench
bench: bench-model bench-time bench-observer bench-dataplane bench-analysis ## Run all benchmarks; each prints a table and writes build/bench/<target>.json

.PHONY: bench-model
bench-model: $(READY) ## What the processor model costs: bare emulation, counting, modelling (CPU=profile)
	$(VENV)/bin/python -m vsprof.bench.model $(if $(CPU),--cpu-profile "$(CPU)")

.PHONY: bench-time
bench-time: $(READY) ## Has modelled time converged? Several quanta, a second lab, and beside a busy program (SWITCHES=, CPU=profile)
	$(VENV)/bin/python -m vsprof.bench.modelled_time $(if $(SWITCHES),--switches $(SWITCHES)) $(if $(CPU),--cpu-profile "$(CPU)")

.PHONY: bench-gate
bench-gate: $(READY) ## Is the verdict of a gate right? Against a vhost-switch slowed down on purpose, and against itself (ROUNDS=10)
	$(VENV)/bin/python -m vsprof.bench.gate $(if $(ROUNDS),--rounds $(ROUNDS))

.PHONY: bench-snapshots
bench-snapshots: $(READY) ## Is every lab that boots sound? Boots it 30 times, about a minute each
	$(VENV)/bin/python -m vsprof.bench.snapshots

.PHONY: bench-observer
bench-observer: $(READY) ## What each collector costs the traffic that it watches (TESTBED=, SWITCHES=, COLLECTORS=)
	$(VENV)/bin/python -m vsprof.bench.observer $(if $(filter-out auto,$(TESTBED)),--testbed $(TESTBED)) $(if $(SWITCHES),--switches $(SWITCHES)) $(if $(COLLECTORS),--collectors $(COLLECTORS))

.PHONY: bench-dataplane
bench-dataplane: $(READY) ## vhost-switch beside OVS-DPDK and testpmd, between the same two endpoints (TESTBED=native|lab, CPU=profile, HALF_WIDTH=0.03, FRAMES=, CONTENDERS=)
	$(VENV)/bin/python -m vsprof.bench.dataplane $(if $(filter-out auto,$(TESTBED)),--testbed $(TESTBED)) $(if $(CPU),--cpu-profile "$(CPU)") \
		$(if $(HALF_WIDTH),--half-width $(HALF_WIDTH)) $(if $(FRAMES),--frames $(FRAMES)) $(if $(CONTENDERS),--contenders $(CONTENDERS))

.PHONY: bench-analysis
bench-analysis: $(READY) ## How long a report takes over a million measurement rows, and how much memory
	$(VENV)/bin/python -m vsprof.bench.analysis

.PHONY: validate-model
validate-model: $(READY) ## Is the processor model right? Against this machine's PMU, or against what must happen: tables and a page (CPU=profile)
	$(VENV)/bin/python -m vsprof.bench.validate $(if $(CPU),--cpu-profile "$(CPU)")

.PHONY: validate-time
validate-time: $(READY) ## Are the times right that the model predicts? The same programs natively and in the lab: tables and a page (CPU=profile)
	$(VENV)/bin/python -m vsprof.bench.validate_time $(if $(CPU),--cpu-profile "$(CPU)")

.PHONY: lint
lint: $(READY) ## Check the style of Python's sources (ruff) and of C's (clang-format)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	git ls-files '*.c' '*.h' | xargs $(VENV)/bin/clang-format --dry-run -Werror

.PHONY: pin
pin: $(READY) ## Resolve the dependencies of pyproject.toml again into requirements.txt
	$(VENV)/bin/python -m pip install --quiet uv
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--extra dev --custom-compile-command "make pin" --output-file requirements.txt pyproject.toml
	echo jupyterlab | $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --constraints requirements.txt \
		--custom-compile-command "make pin" --output-file tools/jupyter-requirements.txt -
	printf 'snakemake\nsnakemake-executor-plugin-slurm\n' | $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 \
		--generate-hashes --constraints requirements.txt --custom-compile-command "make pin" --output-file tools/sweep-requirements.txt -

.PHONY: clean
clean: $(READY) ## Remove what killed runs left behind (INVENTORY=file: on its servers, too)
	$(VSPROF) clean $(if $(INVENTORY),--inventory "$(INVENTORY)") $(if $(SERVER),--server "$(SERVER)")

.PHONY: distclean
distclean: ## Remove the lab's image and snapshots too, and then build/
	if [ -x $(VSPROF) ]; then $(VSPROF) clean --cache; fi
	rm -rf build
