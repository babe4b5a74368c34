# Fieldpost. `make` alone says what there is. Every target makes what it needs, .venv included.

PYTHON  ?= python3
HOST    ?= 127.0.0.1
PORT    ?= 8080
DATA    ?= data
SECONDS ?= 600
ifndef SEED
SEED    := $(shell date +%s)
endif

INVENTED := tests/device tests/pure/test_decode.py tests/pure/test_gaps.py tests/pure/test_log.py tests/web/test_any_input.py

BIN   := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test check campaign bench clean

help: ## say what there is
	@echo "make TARGET, and what it does:"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(READY) ## gateway and one virtual board, until Ctrl-C (HOST=0.0.0.0 for real boards, PORT=8080, DATA=data)
	@exec $(BIN)/python -m tools.run --host $(HOST) --port $(PORT) --data $(DATA)

test: $(READY) ## all tests, under five minutes
	$(BIN)/pytest

check: $(READY) ## lint, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

campaign: $(READY) ## crashes, power cuts and invented input for about SECONDS=600, repeatable by SEED=
	@echo "campaign: SECONDS=$(SECONDS) SEED=$(SEED)"
	$(BIN)/python -m tools.prove --boards 5 --kills $$(( $(SECONDS) / 6 )) --seconds $$(( $(SECONDS) / 2 )) --seed $(SEED)
	$(BIN)/python -m tools.outage --boards 5 --seconds $$(( $(SECONDS) / 4 ))
	$(BIN)/python -m tools.powercut --seconds $$(( $(SECONDS) / 4 )) --seed $(SEED)
	CAMPAIGN_EXAMPLES=$$(( $(SECONDS) * 2 )) $(BIN)/pytest -m hypothesis --hypothesis-profile=campaign --hypothesis-seed=$(SEED) $(INVENTED)

bench: $(READY) ## the figures of docs/measured.md; needs a quiet machine and fifteen minutes
	$(BIN)/python -m tools.bench ingest
	$(BIN)/python -m tools.bench jobs
	$(BIN)/python -m tools.bench front
	$(BIN)/python -m tools.bench outbox
	$(BIN)/python -m tools.bench heap

clean: ## remove .venv and caches; the data folder stays
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || \
	  { echo "There is no $(PYTHON): install python3 (3.11 or newer), or say PYTHON=/path/to/it"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Fieldpost needs Python 3.11 or newer, $(PYTHON) is older: say PYTHON=python3.12 or the like"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) can make no virtual environment: install python3-venv"; exit 1; }
	@echo "making .venv, once; it takes a minute"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
