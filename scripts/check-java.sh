#!/bin/sh
# Spark needs Java 17 or later, and a wheel its compiler: check-java.sh [javac]. Say so where it is missing; on a
# Debian-like machine run as root, install it.
set -eu
program=${1:-java}
package=openjdk-17-jre-headless
[ "$program" = java ] || package=openjdk-17-jdk-headless

# java prints `openjdk version "17.0.15"`, javac prints `javac 17.0.15`.
version() {
    "${JAVA_HOME:+$JAVA_HOME/bin/}$program" -version 2>&1 | sed -n 's/^\(.*version "\|javac \)\([0-9]*\).*/\2/p' | head -n 1
}

found=$(version 2>/dev/null || true)
if [ -n "$found" ] && [ "$found" -ge 17 ]; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "There is no $program of Java 17; installing $package"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >/dev/null
    found=$(version 2>/dev/null || true)
    [ -n "$found" ] && [ "$found" -ge 17 ] && exit 0
fi
echo "$program of Java 17 or later is needed; found: ${found:-none}." >&2
echo "Install it (Debian, Ubuntu: apt-get install $package; macOS: brew install openjdk@17)" >&2
echo "or point JAVA_HOME to it. Everything but Spark works without: make test-fast." >&2
exit 1
