#!/bin/sh
# Makes the scoreboard: published runs, predicted against measured. From the project's root, after
# `cmake --workflow --preset demo`. Takes about half a minute, and the plot needs gnuplot.
#
# shipped.txt   the rows under scenarios/published/
# all.txt       every row of the published tables that were at hand while fourfold was built, where
#               FOURFOLD_PUBLISHED_DATA names the folder with them (needs Python 3 and PyYAML)
set -eu
cd "$(dirname "$0")/../../.."
fourfold=${FOURFOLD:-build/demo/scenarios/fourfold}
out=results/published/accuracy
"$fourfold" validate scenarios/published --csv $out/shipped.csv >$out/shipped.txt
if [ -n "${FOURFOLD_PUBLISHED_DATA:-}" ]; then
    converted=$(mktemp -d)
    trap 'rm -rf "$converted"' EXIT
    python3 tests/published/convert.py "$FOURFOLD_PUBLISHED_DATA" "$converted" >/dev/null
    "$fourfold" validate "$converted" --plot $out/all.svg >$out/all.txt
fi
cat $out/*.txt
