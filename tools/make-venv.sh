#!/bin/sh
# Make a virtual environment in $1 with the first Python >= 3.11 that is found (or with $PYTHON), unless there is one.
set -eu
target=$1
new_enough='import sys, venv; sys.exit(sys.version_info < (3, 11))'

if "$target/bin/python" -c "$new_enough" 2>/dev/null && "$target/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi
for python in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14 python; do
    "$python" -c "$new_enough" 2>/dev/null || continue
    rm -rf "$target"
    if "$python" -c 'import ensurepip' 2>/dev/null; then
        exec "$python" -m venv "$target"
    fi
    # Debian splits ensurepip off into python3-venv: the machine's own pip does as well
    "$python" -m venv --without-pip "$target"
    exec "$python" -m pip --python "$target/bin/python" install -q pip
done
{
    echo "error: concordant needs Python 3.11 or newer; found:"
    for python in ${PYTHON:-} python3 python; do
        command -v "$python" >/dev/null 2>&1 && echo "  $(command -v "$python"): $("$python" --version 2>&1)"
    done
    echo "Name another one with: make PYTHON=/path/to/python3 ..."
} >&2
exit 1
