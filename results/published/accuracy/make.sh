#!/bin/sh
# Makes table.txt: the published runs, predicted against measured. From the project's root, after
# `cmake --workflow --preset demo`. Takes about two minutes and 4 GB.
set -eu
cd "$(dirname "$0")/../../.."
fourfold=${FOURFOLD:-build/demo/scenarios/fourfold}
published=scenarios/published
out=results/published/accuracy/table.txt
{
    echo "Megatron-LM 2021, Table 1, and recomputation 2022, Table 5"
    "$fourfold" run $published/megatron_sc21/1.7b.yaml $published/megatron_sc21/3.6b.yaml \
        $published/megatron_sc21/7.5b.yaml $published/megatron_sc21/145.6b.yaml \
        $published/megatron_sc21/1008b.yaml $published/korthikanti/*.yaml
    echo
    echo "Megatron-LM 2021, Table 2: ZeRO-3 without tensor parallelism"
    "$fourfold" run $published/megatron_sc21/zero3-*.yaml
} > "$out.new"
mv "$out.new" "$out"
cat "$out"
