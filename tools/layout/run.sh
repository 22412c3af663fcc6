#!/bin/sh
# The move to nine wings in one go, in a clean checkout: sh tools/layout/run.sh PYTHON (of the virtual environment)
set -e
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=$(dirname "$1")
cd "$root"
"$1" "$here/cut.py" .
"$bin/ruff" check --fix -q src || true
"$1" "$here/arrows.py" .
"$1" "$here/merge.py" .
"$1" "$here/finish.py" .
git add -A
"$bin/ruff" check --fix -q . >/dev/null || true
"$bin/ruff" format -q .
"$bin/ruff" check --fix -q . || true
cp "$here/texts/test_architecture.txt" tests/test_architecture.py
"$bin/ruff" format -q tests/test_architecture.py
"$1" -m mypy
