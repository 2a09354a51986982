#!/bin/sh
# Installs what building and testing fourfold needs, on Debian and Ubuntu. Does nothing, and uses no
# network, when all of it is there. Elsewhere it prints the list.
set -eu

# Package, and what it is for.
needed='
g++                 C++20 compiler (g++ 12 or newer)
cmake               configures the build (3.25 or newer)
ninja-build         runs the build
libboost-graph-dev  Boost.Graph: the link graph
libyaml-cpp-dev     yaml-cpp: reads scenarios
libcli11-dev        CLI11: the command line
libfmt-dev          fmt: text
nlohmann-json3-dev  nlohmann-json: writes JSON
libexpected-dev     tl::expected: results of what can go wrong
doctest-dev         doctest: the tests
libbenchmark-dev    Google Benchmark: the benchmarks
clang-format        formatting, which the gate checks (version 14 decides)
'
optional='gnuplot-nox (draws curves), clang-tidy (preset tidy), gcovr (preset coverage)'

if [ $# -gt 0 ]; then
    echo "usage: ./setup.sh" >&2
    exit 2
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    {
        echo "setup.sh installs packages on Debian and Ubuntu only. On this system, install these"
        echo "(Debian's names) by its own means, then go on with cmake:"
        echo "$needed"
        echo "Optional: $optional"
    } >&2
    exit 1
fi

missing=''
for package in $(echo "$needed" | awk '{ print $1 }'); do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || status=''
    [ "$status" = installed ] || missing="$missing $package"
done

if [ -z "$missing" ]; then
    echo "setup.sh: nothing to install"
else
    echo "setup.sh: installing$missing (a minute or two)"
    if [ "$(id -u)" -eq 0 ]; then
        as_root='env'
    elif command -v sudo >/dev/null; then
        as_root='sudo'
    else
        echo "setup.sh: neither root nor sudo; run as root: apt-get install$missing" >&2
        exit 1
    fi
    $as_root apt-get -qq -o Acquire::Retries=3 update
    # shellcheck disable=SC2086  # one word per package
    $as_root DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 \
        -o DPkg::Lock::Timeout=120 install --no-install-recommends --yes $missing >/dev/null
    echo "setup.sh: done. Optional: $optional"
fi

version=$(cmake --version | awk 'NR == 1 { print $3 }')
if ! printf '3.25\n%s\n' "$version" | sort -V -C; then
    echo "setup.sh: cmake $version is too old for \`cmake --workflow\`: 3.25 or newer is needed" >&2
    exit 1
fi
