# The only entry point of the repository: `make help` lists its commands.
#
# Every command runs as `.venv/bin/python -m ...`, never through the scripts beside it, whose first line holds an
# absolute path: so a clone may be moved, and may lie in a folder with spaces in its name. Kept to GNU Make 3.81.

PY       := .venv/bin/python
HOST     ?= 127.0.0.1
PORT     ?= 8000
PIP      := $(PY) -m pip --disable-pip-version-check install --require-hashes
BOOK     := $(PY) -c 'from jupyter_book.cli.main import main; main()' build -W -n --keep-going --all .
EXECUTE  := $(PY) -m nbconvert --log-level=ERROR --to notebook --execute \
            --ExecutePreprocessor.record_timing=False \
            --NotebookExporter.preprocessors='["nbconvert.preprocessors.CoalesceStreamsPreprocessor"]' \
            --ClearMetadataPreprocessor.enabled=True \
            --ClearMetadataPreprocessor.preserve_cell_metadata_mask='["tags", "mystnb"]' \
            --ClearMetadataPreprocessor.preserve_nb_metadata_mask='["kernelspec", "tags"]'
COMPILE  := .venv/uv/bin/python -m uv pip compile --no-config --quiet --universal --python-version 3.11 \
            --generate-hashes --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)
CHAPTERS := $(if $(NOTEBOOK),$(basename $(notdir $(NOTEBOOK))),$(basename $(notdir $(wildcard book/*.ipynb))))

# The kernels of this environment, whatever else Jupyter finds in a home directory.
export JUPYTER_PREFER_ENV_PATH := 1
unexport PYTHONHOME
# Whose records a chapter shows: a folder of records/.
export CLIMB_GPU
# Hundreds of processes import the same modules: their bytecode is written once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help book serve pdf test test-all mutate run live record report address gpu lock clean
.DEFAULT_GOAL := help

help:
	@echo 'make book                 build the book into _build/html'
	@echo 'make serve                build it and serve it on http://$(HOST):$(PORT)'
	@echo 'make pdf                  print the whole book into _build/climb-to-the-roofline.pdf, with Chromium'
	@echo 'make test                 run a sample of the tests, and execute every chapter again and compare it'
	@echo '                          ARGS="-k transpose" is handed to pytest'
	@echo 'make test-all             the same with many more tests, sizes and architectures, as CI does'
	@echo 'make mutate               plant mistakes in kernels and tools, and say which no test notices'
	@echo '                          ARGS="--area rungs --count 60 --seed 1" chooses others'
	@echo 'make run                  execute the chapters in place, timings replayed from the records'
	@echo '                          NOTEBOOK=coalescing executes one; CLIMB_GPU=nvidia-h100-80gb-hbm3 shows the'
	@echo '                          records of another GPU, into _build/nvidia-h100-80gb-hbm3'
	@echo 'make live                 execute them on your GPU, measuring anew, into _build/live'
	@echo 'make record               measure, count and profile every ladder on this GPU; LADDER=transpose does one'
	@echo '                          ARGS="--only measure" is handed to climb record'
	@echo 'make report               print the table of all records; redraw README.md from them'
	@echo 'make address              write repository.url of _config.yml into the first cell of every chapter'
	@echo 'make gpu                  install what a machine with an NVIDIA GPU needs besides'
	@echo 'make lock                 pin requirements*.txt again; UPGRADE=1 takes newer versions'
	@echo 'make clean                remove what was built; the environment .venv stays'

book: .venv/ok
	$(BOOK)

serve: book
	@echo 'Open http://$(HOST):$(PORT) in a browser; Ctrl-C ends it.'
	@$(PY) -m http.server $(PORT) --bind $(HOST) --directory _build/html

pdf: book
	@$(PY) book/pdf.py _build/html _build/climb-to-the-roofline.pdf

test-all: override ARGS += --thorough --in-turns
test-all: test

test: .venv/ok
	WORKLOG_TIMINGS=record $(PY) -m pytest -n auto --dist loadfile --no-loadscope-reorder \
	    --nbval --nbval-current-env --nbval-cell-timeout=300 --sampled $(ARGS) tests book

mutate: .venv/ok
	$(PY) -m climb mutate $(ARGS)

run: export WORKLOG_TIMINGS := record
run: INTO := $(if $(CLIMB_GPU),_build/$(CLIMB_GPU),book)
run: .venv/ok
	@$(execute)

live: export WORKLOG_TIMINGS := live
live: export CLIMB_PROGRESS = $(CURDIR)/_build/live.log
live: INTO := _build/live
live: .venv/ok
	@$(execute)

# One chapter after another, each into a temporary folder and moved when it is whole: an interrupted or failed run
# leaves the notebook as it was. What measuring says of its progress is shown as it is written.
define execute
set -e; mkdir -p '$(INTO)' _build; scratch=$$(mktemp -d _build/run.XXXXXX); \
shown=; if test -n "$$CLIMB_PROGRESS"; then : >"$$CLIMB_PROGRESS"; tail -f "$$CLIMB_PROGRESS" & shown=$$!; fi; \
trap 'rm -rf "$$scratch"; test -z "$$shown" || kill "$$shown"' EXIT; trap 'exit 130' INT TERM; \
n=0; for chapter in $(CHAPTERS); do \
    n=$$((n + 1)); start=$$(date +%s); \
    test -f "book/$$chapter.ipynb" || { echo "book/$$chapter.ipynb: no such chapter" >&2; exit 2; }; \
    printf '[%s/%s] %s ' "$$n" $(words $(CHAPTERS)) "$$chapter"; test -z "$$shown" || echo; \
    $(EXECUTE) --output-dir "$$scratch" "book/$$chapter.ipynb" >"$$scratch/log" 2>&1 || \
        { echo; sed -n '/^nbclient\.exceptions/,$$p' "$$scratch/log" | grep . || cat "$$scratch/log"; echo "book/$$chapter.ipynb failed; it is left as it was"; exit 1; } >&2; \
    mv "$$scratch/$$chapter.ipynb" '$(INTO)'/; \
    echo "$${shown:+$$chapter: }$$(( $$(date +%s) - start )) s"; \
done
endef

record: .venv/ok
	$(PY) -m climb record $(LADDER) $(ARGS)

report: .venv/ok
	$(PY) -m climb report --readme
	$(PY) -m climb figures

address: .venv/ok
	$(PY) -m climb address

# The GPU lock replaces some of torch's pins (requirements-gpu-overrides.in says which and why), so pip must not resolve.
gpu: .venv/ok
	$(PIP) --no-deps -r requirements-gpu.txt

lock: .venv/uv/ok
	$(COMPILE) requirements.in -o requirements.txt
	$(COMPILE) -c requirements.txt --override requirements-gpu-overrides.in requirements-gpu.in -o requirements-gpu.txt

clean:
	rm -rf _build .pytest_cache .hypothesis .ruff_cache
	find book climb kernels tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment. PYTHON=/path/to/python chooses the interpreter; otherwise the first that fits is taken.
FITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))

.venv/ok: requirements.txt
	@$(environment)
	$(PIP) -r requirements.txt
	@touch $@

# An environment whose Python is gone (upgraded away, say) is made anew.
ifeq ($(wildcard $(PY)),)
.venv/ok: anew
.PHONY: anew
anew:
endif

define environment
if $(PY) -c '$(FITS)' 2>/dev/null && $(PY) -m pip --version >/dev/null 2>&1; then exit 0; fi; \
python=; \
if test -n "$$PYTHON"; then set -- "$$PYTHON"; else set -- python3 python3.13 python3.12 python3.11 python; fi; \
for candidate; do \
    if "$$candidate" -c '$(FITS)' 2>/dev/null; then python=$$candidate; break; fi; \
done; \
if test -z "$$python"; then \
    echo "The book needs Python 3.11, 3.12 or 3.13. Tried: $$*." >&2; \
    for candidate; do "$$candidate" -c 'import sys; print("  %s is Python %d.%d" % ((sys.executable,) + tuple(sys.version_info[:2])))' >&2 2>/dev/null; done; \
    echo "If you have one elsewhere: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; \
fi; \
if ! "$$python" -c 'import venv, ensurepip' 2>/dev/null; then \
    echo "$$python has no venv module. On Debian and Ubuntu: sudo apt install python3-venv" >&2; exit 1; \
fi; \
echo "Making .venv with $$("$$python" --version): once, about a minute and a gigabyte."; \
"$$python" -m venv --clear .venv
endef

.venv/uv/ok: .venv/ok
	$(PY) -m venv --clear .venv/uv
	.venv/uv/bin/python -m pip --disable-pip-version-check --quiet install uv==0.13.8
	@touch $@
