# Fieldpost. `make` alone says what there is. Every target makes what it needs, .venv included.

PYTHON  ?= python3
HOST    ?= 127.0.0.1
PORT    ?= 8080
DATA    ?= data
SECONDS ?= 600
ifndef SEED
SEED    := $(shell date +%s)
endif

BIN   := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test check campaign bench clean flash doctor monitor provision backup-board board lab

help: ## say what there is
	@echo "make TARGET, and what it does:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(READY) ## gateway and one virtual board, until Ctrl-C (HOST=0.0.0.0 for real boards, PORT=8080, DATA=data)
	@exec $(BIN)/python -m tools.run --host $(HOST) --port $(PORT) --data $(DATA)

test: $(READY) ## all tests, under five minutes
	$(BIN)/pytest -n 4 --dist loadfile

check: $(READY) ## lint, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

campaign: $(READY) ## crashes, power cuts and invented input for about SECONDS=600, repeatable by SEED=
	@echo "campaign: SECONDS=$(SECONDS) SEED=$(SEED)"
	$(BIN)/python -m tools.prove --boards 5 --kills $$(( $(SECONDS) / 6 )) --seconds $$(( $(SECONDS) / 2 )) --seed $(SEED)
	$(BIN)/python -m tools.outage --boards 5 --seconds $$(( $(SECONDS) / 4 ))
	$(BIN)/python -m tools.powercut --seconds $$(( $(SECONDS) / 4 )) --seed $(SEED)
	$(BIN)/python -m tools.flash_campaign --runs $$(( $(SECONDS) / 30 )) --seed $(SEED)
	$(BIN)/python -m tools.replug --times $$(( $(SECONDS) / 60 + 1 )) --seed $(SEED)
	$(BIN)/python -m tools.fleet --boards 200 --seconds $$(( $(SECONDS) / 20 )) --outage 5 --duplicates 5 --poison 1 --clones 5 --clock-faults 10 --seed $(SEED)
	@[ $(SECONDS) -lt 600 ] || $(BIN)/pytest -n 2 --dist loadfile -m long # not in a short slice
	CAMPAIGN_EXAMPLES=$(SECONDS) $(BIN)/pytest -n 2 -m hypothesis --hypothesis-profile=campaign --hypothesis-seed=$(SEED)

bench: $(READY) ## the figures of docs/measured.md; needs a quiet machine and twenty minutes
	$(BIN)/python -m tools.bench ingest
	$(BIN)/python -m tools.bench jobs
	$(BIN)/python -m tools.bench front
	$(BIN)/python -m tools.bench imports
	$(BIN)/python -m tools.bench outbox
	$(BIN)/python -m tools.bench heap
	$(BIN)/python -m tools.bench cable

lab: $(READY) ## the experiments on the real system, all or one (N=3, HTML=page.html, LANGUAGE=pt)
	@$(BIN)/python -m tools.lab $(N) $(if $(HTML),--html $(HTML)) $(if $(filter pt en,$(LANGUAGE)),--lang $(LANGUAGE)) $(if $(filter-out file,$(origin SEED)),--seed $(SEED))

# For these PORT is a board's; what it is by default is `make run`'s.
AT_BOARD = --data $(DATA) $(if $(filter-out file,$(origin PORT)),--port $(PORT)) $(if $(DEVICE),--device $(DEVICE))
AT_GATEWAY = $(if $(GATEWAY),--gateway $(GATEWAY)) $(if $(filter ask,$(WIFI)),--ask-wifi)

flash: $(READY) ## put the firmware on a board (PORT=, GATEWAY=, DEVICE=, ERASE=1, FIRMWARE=file.bin, DRY_RUN=1, YES=1)
	@$(BIN)/python -m tools.flash $(AT_BOARD) $(AT_GATEWAY) $(if $(FIRMWARE),--firmware $(FIRMWARE)) $(if $(ERASE),--erase) $(if $(DRY_RUN),--dry-run) $(if $(YES),--yes)

doctor: $(READY) ## say what is wrong with a board, its port or its gateway (PORT=, GATEWAY=)
	@$(BIN)/python -m tools.flash doctor $(AT_BOARD) $(AT_GATEWAY)

monitor: $(READY) ## follow a board's log, until Ctrl-C (PORT=)
	@$(BIN)/python -m tools.flash monitor $(AT_BOARD)

provision: $(READY) ## write only a board's settings: Wi-Fi, gateway, key (PORT=, GATEWAY=, WIFI=ask)
	@$(BIN)/python -m tools.flash provision $(AT_BOARD) $(AT_GATEWAY)

backup-board: $(READY) ## copy a board's outbox and settings to the data folder (PORT=)
	@$(BIN)/python -m tools.flash backup $(AT_BOARD)

board: $(READY) ## a virtual board with an empty flash, and its PORT for `make flash`, until Ctrl-C
	@mkdir -p $(DATA)
	@echo "in another terminal: make flash PORT=$(DATA)/board.tty (and make run, if no gateway runs)"
	@exec $(BIN)/python -m tools.virtual_board --flash $(DATA)/usb-board.img --bare --pty $(DATA)/board.tty

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
