# Needs Python 3.11+, git and make; everything else is installed into .venv, pinned and checked by hash.

# As they were typed: make does not look inside, and the scripts get them through the environment.
override TASK := $(value TASK)
override DIR := $(value DIR)
export TASK DIR PYTHON

BIN = .venv/bin

.PHONY: help run test check-fast format lint types layers faults pages pictures test-browser pins clean environment-run environment-dev \
	bench bench-cost bench-frugality bench-growth bench-safety bench-exercises bench-faults bench-damage site packages pex

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 22
	@echo
	@echo 'make run TASK="..." DIR=FOLDER does one task in that folder and ends.'

run: environment-run ## Open the conversation, here or in DIR=FOLDER; with TASK="..." do that task and end
	@scripts/start

test: environment-dev ## Check everything: format, lint, types, layers, structure, behaviour
	@scripts/check

check-fast: environment-dev ## About a minute: format, lint, layers, and the tests that start no programs
	@scripts/check-fast

format: environment-dev ## Format, and mend what can be mended
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: environment-dev ## Lint only
	@$(BIN)/ruff check .

types: environment-dev ## Types only
	@$(BIN)/basedpyright

layers: environment-dev ## Import layers only
	@$(BIN)/lint-imports

faults: environment-dev ## Kills, full disks and disk errors at every write of a session (minutes; needs strace)
	@$(BIN)/python bench/faults.py

bench: bench-cost bench-frugality bench-growth bench-safety bench-exercises bench-faults bench-damage ## Measure everything; writes docs/benchmarks.md

bench-cost: environment-dev ## Start, loop, memory and prompts beside other agents
	@$(BIN)/python bench/cost.py && $(BIN)/python bench/page.py

bench-frugality: environment-dev ## How much of the prompts repeats, and what they cost
	@$(BIN)/python bench/prompts.py && $(BIN)/python bench/page.py

bench-growth: environment-dev ## Large folders, long sessions
	@$(BIN)/python bench/growth.py && $(BIN)/python bench/page.py

bench-safety: environment-dev ## What each kind of action costs more than a plain one
	@$(BIN)/python bench/sandbox.py && $(BIN)/python bench/page.py

bench-exercises: environment-dev ## Exercises on the embedded model: bare, Aider, Duckflow (all of FOLDER=...: hours)
	@$(BIN)/python bench/exercises.py $(or $(FOLDER),--fresh --minutes 8 --limit 120) && $(BIN)/python bench/page.py

bench-damage: environment-dev ## Commands that also destroy something, in each mode and without Duckflow
	@$(BIN)/python bench/hidden_damage.py && $(BIN)/python bench/page.py

bench-faults: environment-dev ## Some of the faults that `make faults` tries, in minutes
	@$(BIN)/python bench/faults.py --kills 60 --errors 15 && $(BIN)/python bench/page.py

site: environment-dev ## Build the documentation as a site, in site/
	@scripts/site

packages: environment-dev ## Wheel and source archive, in dist/
	@rm -f dist/*.whl dist/*.tar.gz
	@$(BIN)/hatchling build --directory dist

pex: environment-dev ## One file that runs duckflow without an installation, in dist/
	@scripts/pex

pages: environment-dev ## Write the tables in docs/ that are made from the program
	@$(BIN)/python scripts/pages.py

pictures: environment-dev ## Draw the pictures in docs/ in a real conversation
	@$(BIN)/python scripts/pictures.py

test-browser: environment-dev ## Drive the web view in a real browser, both languages (installs chromium; part of .ci/run, not of test)
	@scripts/browser $(if $(PICTURES),--pictures)

pins: environment-dev ## Choose new versions and write requirements/*.txt
	@requirements/compile

clean: ## Remove what was made here; models, sessions and settings stay
	rm -rf .venv .venv-browser .venv.lock dist build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

environment-run:
	@scripts/environment run

environment-dev:
	@scripts/environment dev
