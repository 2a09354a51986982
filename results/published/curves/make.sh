#!/bin/sh
# Makes the curves in this folder. From the project's root, after `cmake --workflow --preset demo`;
# needs gnuplot.
set -eu
cd "$(dirname "$0")/../../.."
fourfold=${FOURFOLD:-build/demo/scenarios/fourfold}
"$fourfold" curves idle --out results/published/curves
"$fourfold" curves ring --out results/published/curves
