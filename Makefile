.PHONY: check test lint types generate bench

check: test lint types

test:
	./test

lint:
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

types:
	.venv/bin/mypy

generate:
	.venv/bin/python scripts/generate_catalogue.py
	.venv/bin/python scripts/generate_schemas.py
	.venv/bin/python scripts/generate_frontmatter.py
	.venv/bin/python scripts/generate_policy.py
	.venv/bin/python -m scripts.generate_scan
	.venv/bin/python scripts/generate_reference.py

bench:
	.venv/bin/python -m bench
