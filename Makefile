.PHONY: check test lint types generate bench
.DEFAULT_GOAL := check

# The virtual environment with the development tools.
DEV = .venv/.made-for-dev

$(DEV): pyproject.toml
	sh -c '. scripts/environment.sh && prepare "$$PWD" dev'

check: test lint types

test:
	./test

lint: $(DEV)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

types: $(DEV)
	.venv/bin/mypy

generate: $(DEV)
	.venv/bin/python scripts/generate_catalogue.py
	.venv/bin/python scripts/generate_schemas.py
	.venv/bin/python scripts/generate_frontmatter.py
	.venv/bin/python scripts/generate_policy.py
	.venv/bin/python -m scripts.generate_scan
	.venv/bin/python scripts/generate_reference.py

bench: $(DEV)
	.venv/bin/python -m bench
