#!/usr/bin/env python3
"""Holds fourfold to what it promises about published runs: score.py FOURFOLD_BINARY [DATA_DIR].

Converts the published tables of DATA_DIR (by default $FOURFOLD_PUBLISHED_DATA) to scenarios, runs
`fourfold validate` on all of them, prints how they compare and which promises hold. Exit code 0:
all hold; 1: one is broken, or something did not run; 77: no data, or no PyYAML to read it.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SKIPPED = 77  # SKIP_RETURN_CODE of the test in tests/CMakeLists.txt
sys.dont_write_bytecode = True  # nothing beside the sources

try:
    import convert
except ImportError as missing:
    print(f"skipped: {missing}; install PyYAML to convert published tables")
    sys.exit(SKIPPED)

Row = dict[str, Any]  # of `validate --json`

# -------------------------------------------------------------------------------- the promises

# Predicted 15 to 38 % too fast where no other run is beyond 12 %: taken as disturbances of the
# cluster. What speaks for that and against it: results/published/accuracy/residuals.md.
DISTURBED = {f"vtrain-m{row}" for row in ("041", "046", "050", "070", "080", "085")}


@dataclass
class Promise:
    what: str
    of: Callable[["Rows"], float]
    most: float  # percent
    least: float = 0


# fmt: off
PROMISES = [
    Promise("vtrain, mean",             lambda rows: rows.mean("vtrain"),              6.0),
    Promise("vtrain, median",           lambda rows: rows.median("vtrain"),            3.0),
    Promise("vtrain, undisturbed mean", lambda rows: rows.mean("vtrain", DISTURBED),   3.5),
    Promise("korthikanti, mean",        lambda rows: rows.mean("korthikanti"),         2.5),
    Promise("korthikanti, max",         lambda rows: rows.max("korthikanti"),          4.0),
    Promise("zero_bubble, mean",        lambda rows: rows.mean("zero_bubble"),         4.5),
    Promise("dgxc_h100, mean",          lambda rows: rows.mean("dgxc_h100"),           3.0),
    Promise("fsdp_a100, mean",          lambda rows: rows.mean("fsdp_a100"),           5.0),
    Promise("fsdp_h100, mean",          lambda rows: rows.mean("fsdp_h100"),           6.5),
    Promise("megatron_sc21, mean",      lambda rows: rows.mean("megatron_sc21"),       5.0),
    Promise("bloom, mean",              lambda rows: rows.mean("bloom"),               6.5),
    Promise("all, in the 90 % interval", lambda rows: rows.coverage(),                97.0, 85.0),
    # Of the four models of vTrain, the third smallest loss from choosing by prediction.
    Promise("vtrain, regret of 3 of 4", lambda rows: sorted(rows.regrets())[2],        1.1),
]
# fmt: on

# ------------------------------------------------------------------------------------ the rows


@dataclass
class Choice:
    """Of the measured layouts of one model, batch and number of devices."""

    hidden: int
    layouts: int
    chosen: Row  # predicted fastest
    best: Row  # measured fastest

    def regret(self) -> float:
        return 100 * (self.chosen["measured_s"] / self.best["measured_s"] - 1)


class Rows:
    def __init__(self, rows: list[Row], hidden: dict[str, int]) -> None:
        self.all = rows
        self.by_name = {row["name"]: row for row in rows}
        self.hidden = hidden  # of each run of vTrain
        self.groups: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            self.groups[row["group"]].append(row)

    def errors(self, group: str, without: Collection[str] = ()) -> list[float]:
        rows = [row for row in self.groups[group] if row["name"] not in without]
        return [100 * abs(row["error"]) for row in rows]

    def mean(self, group: str, without: Collection[str] = ()) -> float:
        return statistics.mean(self.errors(group, without))

    def median(self, group: str) -> float:
        return statistics.median(self.errors(group))

    def max(self, group: str) -> float:
        return max(self.errors(group))

    def coverage(self) -> float:
        known = [row for row in self.all if row["low_s"] is not None]
        inside = [row for row in known if row["low_s"] <= row["measured_s"] <= row["high_s"]]
        return 100 * len(inside) / len(known)

    def choices(self) -> list[Choice]:
        models: dict[int, list[Row]] = defaultdict(list)
        for name, hidden in self.hidden.items():
            models[hidden].append(self.by_name[name])
        return [
            Choice(
                hidden,
                len(rows),
                min(rows, key=lambda row: row["predicted_s"]),
                min(rows, key=lambda row: row["measured_s"]),
            )
            for hidden, rows in sorted(models.items())
        ]

    def regrets(self) -> list[float]:
        return [choice.regret() for choice in self.choices()]


def hidden_sizes(data: Path) -> dict[str, int]:
    """Of the runs of vTrain; layouts can be chosen among where devices and batch are the same."""
    sizes: dict[str, int] = {}
    shapes: dict[int, tuple[int, int]] = {}
    for row in convert.yaml.safe_load((data / "vtrain_ground_truth.yaml").read_text())["records"]:
        config, hidden = row["config"], row["model"]["hidden"]
        shape = (config["gpus"], config["gbs"])
        if shapes.setdefault(hidden, shape) != shape:
            raise SystemExit(f"{row['id']}: {shape} devices and batch, others {shapes[hidden]}")
        sizes[row["id"]] = hidden
    return sizes


def measure(fourfold: Path, data: Path, jobs: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        for group in convert.GROUPS:
            count = convert.convert(group, data, Path(folder))
            left_out = count.left_out.total()
            print(f"{group.name:<14}{count.written:>4} written, {left_out:>3} left out")
        sys.stdout.flush()
        command = [fourfold, "validate", folder, "--json", "--jobs", str(jobs)]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        raise SystemExit(f"fourfold validate ended with {run.returncode}")
    return json.loads(run.stdout)["rows"]


# ---------------------------------------------------------------------------------- what to say


def print_groups(rows: Rows) -> None:
    print(f"\n{'group':<14}{'rows':>5}{'mean':>8}{'median':>8}{'max':>8}{'bias':>8}{'in 90 %':>9}")
    for name, group in sorted(rows.groups.items()) + [("all", rows.all)]:
        only = Rows(group, {})
        errors = [100 * abs(row["error"]) for row in group]
        bias = 100 * statistics.mean(row["error"] for row in group)
        print(
            f"{name:<14}{len(group):>5}{statistics.mean(errors):>8.2f}"
            f"{statistics.median(errors):>8.2f}{max(errors):>8.2f}{bias:>+8.2f}"
            f"{only.coverage():>9.1f}"
        )


def print_choices(rows: Rows) -> None:
    print("\nvTrain: the layout predicted fastest, and the fastest")
    print(f"{'hidden':>6}{'layouts':>9}  {'chosen':<30}{'best':<30}{'regret':>8}")
    for choice in rows.choices():

        def named(row: Row) -> str:
            layout = f"t{row['tensor']} p{row['pipeline']} d{row['data']} b{row['micro_batch']}"
            return f"{row['name'][7:]} {layout} {row['measured_s']:.2f} s"

        print(
            f"{choice.hidden:>6}{choice.layouts:>9}  {named(choice.chosen):<30}"
            f"{named(choice.best):<30}{choice.regret():>7.2f}%"
        )


def print_promises(rows: Rows) -> bool:
    print(f"\n{'promise':<28}{'value':>8}{'limit':>14}")
    kept = True
    for promise in PROMISES:
        value = promise.of(rows)
        holds = promise.least <= value <= promise.most
        limit = f"{promise.least:g}..{promise.most:g} %" if promise.least else f"{promise.most:g} %"
        print(f"{promise.what:<28}{value:>8.2f}{limit:>14}  {'holds' if holds else 'BROKEN'}")
        kept = kept and holds
    return kept


def print_comparison(rows: Rows, predictions: Path) -> None:
    """Against another program's predictions of the same runs: set,id,measured_s,predicted_s,..."""
    sets: dict[str, list[tuple[str, float]]] = defaultdict(list)
    with predictions.open(newline="") as file:
        for line in csv.DictReader(file):
            run = line["id"].split("|")[0]  # a date may follow
            sets[line["set"].strip()].append((run, float(line["predicted_s"])))
    print(f"\nagainst {predictions.name}: rows within 0.5 % of it, or nearer to the measurement")
    for name, pairs in sets.items():
        within = nearer = 0
        others, unknown = [], []
        for run, other in pairs:
            if not (row := rows.by_name.get(run)):
                unknown.append(run)
                continue
            ours, measured = row["predicted_s"], row["measured_s"]
            if abs(ours / other - 1) <= 0.005:
                within += 1
            elif abs(ours / measured - 1) <= abs(other / measured - 1):
                nearer += 1
            else:
                others.append(
                    f"  {run:<58}{100 * (ours / other - 1):>+8.2f} %"
                    f"{100 * (other / measured - 1):>+9.2f} %{100 * row['error']:>+9.2f} %"
                )
        print(f"{name}: {len(pairs)} rows, {within} within, {nearer} nearer, {len(others)} neither")
        if unknown:
            print(f"  {len(unknown)} of them are no scenario here: {', '.join(unknown)}")
        if others:
            print(f"  {'neither':<58}{'ours/it':>10}{'its error':>11}{'our error':>11}")
            print("\n".join(others))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fourfold", type=Path, metavar="FOURFOLD_BINARY")
    parser.add_argument("data", type=Path, nargs="?", metavar="DATA_DIR")
    parser.add_argument("--jobs", type=int, default=1, help="scenarios simulated at a time")
    parser.add_argument("--compare", type=Path, metavar="PREDICTIONS.csv")
    arguments = parser.parse_args()
    data = arguments.data
    if data is None:
        if not (named := os.environ.get("FOURFOLD_PUBLISHED_DATA")):
            print("skipped: no DATA_DIR, and FOURFOLD_PUBLISHED_DATA is not set")
            return SKIPPED
        data = Path(named)
    rows = Rows(measure(arguments.fourfold, data, arguments.jobs), hidden_sizes(data))
    print_groups(rows)
    print_choices(rows)
    kept = print_promises(rows)
    if arguments.compare:
        print_comparison(rows, arguments.compare)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
