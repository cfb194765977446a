# Short names for the scripts, nothing more: each line is a command that you can also type.
.PHONY: demo test check lock format
demo:
	./scripts/demo
test:
	./scripts/test
check:
	./.ci/run
lock:
	./scripts/lock
format:
	.venv/bin/ruff format && .venv/bin/ruff check --fix
