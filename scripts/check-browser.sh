#!/bin/sh
# The page is tested in Chromium. On a Debian-like machine run as root, install it where it is missing.
set -eu

there() {
    command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 ||
        command -v google-chrome >/dev/null 2>&1
}

if there; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Chromium is not here; installing it"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
    there && exit 0
fi
echo "There is no Chromium here, so the tests of the page are skipped (Debian: apt-get install chromium)." >&2
