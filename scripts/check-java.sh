#!/bin/sh
# Spark needs Java 17 or later. Say so where it is missing; on a Debian-like machine run as root, install it.
set -eu

version() {
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

found=$(version 2>/dev/null || true)
if [ -n "$found" ] && [ "$found" -ge 17 ]; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Java 17 is not here; installing openjdk-17-jre-headless"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jre-headless >/dev/null
    found=$(version 2>/dev/null || true)
    [ -n "$found" ] && [ "$found" -ge 17 ] && exit 0
fi
echo "Spark needs Java 17 or later; found: ${found:-none}." >&2
echo "Install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)" >&2
echo "or point JAVA_HOME to it. Everything but Spark works without: make test-fast." >&2
exit 1
