#!/bin/sh
# Install Debian's Chromium for the tests of the report, if there is none and we may. Never fails: those tests then skip.
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "note: no Chromium found: the tests of the report in a browser are skipped (install the package chromium)" >&2
    exit 0
fi
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
if { apt-get install -y -q --no-install-recommends chromium || { apt-get update -q && apt-get install -y -q --no-install-recommends chromium; }; } >"$log" 2>&1; then
    rm -f "$log"
else
    echo "note: Chromium could not be installed (see $log): the tests of the report in a browser are skipped" >&2
fi
exit 0
