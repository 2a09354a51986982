#!/usr/bin/env python3
"""Writes measured training steps as scenarios: convert.py DATA_DIR OUT_DIR.

DATA_DIR holds tables of published runs, one YAML file per source. Each row with a measured step
becomes OUT_DIR/GROUP/ID.yaml; the others are counted by the reason for which they are left out.
What a source does not say, and what was assumed instead, stands in the comment of each scenario.
"""

import argparse
import math
import textwrap
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Row = dict[str, Any]
Section = dict[str, Any]

NODE = 8  # devices; every run fills its nodes
A100_PEAK = 312e12  # FLOP/s, what the papers' utilizations refer to
# bigscience-workshop/Megatron-DeepSpeed, megatron/model/fused_layer_norm.py: a copy of apex's older
# kernels, which megatron-2021.yaml has a measurement of.
APEX_NORM = {"norm_forward": 0.68, "norm_backward": 0.43}


class LeftOut(Exception):
    """The row is not a step that can be simulated; says why."""


@dataclass
class Scenario:
    comment: str
    sections: Section
    step_time: float  # seconds
    source: str


@dataclass
class Group:
    name: str
    file: str
    convert: Callable[[Row], Scenario]
    device: str = ""  # prefix; a file may hold the rows of two groups


@dataclass
class Count:
    written: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


# ------------------------------------------------------------------------------- the sections


def when(condition: bool, **keys: Any) -> Section:
    return keys if condition else {}


def gpt(row: Row, vocab: int, **changes: Any) -> Section:
    """A transformer of GPT-2's kind. The vocabulary is the tokenizer's: the simulator pads it."""
    model = row["model"]
    hidden = model["hidden"]
    return {
        "layers": model["layers"],
        "hidden": hidden,
        "heads": model["heads"],
        "kv_heads": model.get("kv_heads", model["heads"]),
        "ffn": model.get("ffn", 4 * hidden),
        "vocab": vocab,
        "sequence": model["seq"],
        "mlp": "gelu",
        "norm": "layernorm",
        "positions": "learned",
        "tied_embeddings": True,
    } | changes


LLAMA: Section = {
    "mlp": "swiglu",
    "norm": "rmsnorm",
    "positions": "rotary",
    "tied_embeddings": False,
    "bias": False,
}


def cluster(row: Row, base: str, **changes: Any) -> Section:
    return {"base": base} | changes | {"nodes": row["config"]["gpus"] // NODE}


def stage_layers(layers: int, stages: int) -> Section:
    """Empty where the layers can be dealt out evenly."""
    if layers % stages == 0:
        return {}
    if layers + 2 == stages:  # the ends are an embedding and a head, no more
        return {"stage_layers": [0] + [1] * layers + [0]}
    if (layers + 2) % stages == 0:
        return {"stage_layers": "lighter_ends"}
    # DeepSpeed fills stages in order. Its authors say of 78 layers on 12 stages of BLOOM: "the
    # last stage has 1 block, while the rest have 7".
    most = math.ceil(layers / stages)
    return {"stage_layers": [min(most, max(0, layers - most * i)) for i in range(stages)]}


def parallel(row: Row, chunks: int = 1, **changes: Any) -> Section:
    config = row["config"]
    context = config.get("cp", 1)
    return {
        "tensor": config["tp"],
        **when(context > 1, context=context),
        "pipeline": config["pp"],
        "data": config["dp"],
        **changes,
        **stage_layers(row["model"]["layers"], config["pp"] * chunks),
    }


def batch(row: Row) -> Section:
    return {"global": row["config"]["gbs"], "micro": row["config"]["mbs"]}


def schedule(row: Row, chunks: int = 1, **changes: Any) -> Section:
    """The schedule of Megatron-LM; without a pipeline there is nothing to say."""
    if row["config"]["pp"] == 1:
        return {}
    kind = "1f1b" if chunks == 1 else "interleaved_1f1b"
    return {"schedule": {"kind": kind, **when(chunks > 1, chunks=chunks), **changes}}


# ---------------------------------------------------------------------------------- the groups


def vtrain(row: Row) -> Scenario:
    return Scenario(
        "VIA-Research/vTrain @ f8dda84, data/ground_truth_multi.csv. Assumed: tokenizer of GPT-2,"
        " ZeRO-0.",
        {
            "model": gpt(row, vocab=50257),
            "framework": "megatron-deepspeed",
            "cluster": cluster(row, "vtrain"),
            "parallel": parallel(row),
            "batch": batch(row),
            **schedule(row),
            "recompute": "full",
            "precision": "fp16",
        },
        row["result"]["step_time_s"],
        "vTrain @ f8dda84, data/ground_truth_multi.csv",
    )


def korthikanti(row: Row) -> Scenario:
    config, result = row.get("config", {}), row.get("result", {})
    if "gbs" not in config or not result.keys() & {"step_time_s", "mfu_pct"}:
        raise LeftOut("layer times, memory and formulas")
    chunks = config["virtual_stages"]
    sequence_parallel = config.get("sequence_parallel", False)
    time = result.get("step_time_s")
    return Scenario(
        f"Korthikanti et al. 2022 (arXiv 2205.05198), {row['table']}."
        + ("" if time else " The step time is that of the printed MFU of 312 TFLOP/s."),
        {
            "model": gpt(row, row["model"]["vocab"]),
            "framework": "megatron-2022",
            "cluster": cluster(row, "selene"),
            "parallel": parallel(
                row, chunks, **when(sequence_parallel, sequence_parallel=True)
            ),
            "batch": batch(row),
            **schedule(row, chunks),
            "recompute": config["recompute"].split()[0],
            "precision": "fp16",
        },
        time or korthikanti_flops(row) / (config["gpus"] * A100_PEAK * result["mfu_pct"] / 100),
        f"arXiv 2205.05198, {row['table']}" + ("" if time else f": MFU {result['mfu_pct']} %"),
    )


def korthikanti_flops(row: Row) -> float:
    """Of a model step, without recomputation: Korthikanti et al. 2022, eq. 7."""
    model = row["model"]
    layers, hidden, sequence = model["layers"], model["hidden"], model["seq"]
    rest = 1 + sequence / (6 * hidden) + model["vocab"] / (12 * hidden * layers)
    return 72 * row["config"]["gbs"] * layers * sequence * hidden**2 * rest


def megatron_sc21(row: Row) -> Scenario:
    config, result = row.get("config", {}), row.get("result", {})
    if "step_time_s_derived" not in result:
        raise LeftOut("no step time, or no micro-batch size")
    if config["zero_stage"] == 3:
        raise LeftOut("ZeRO-3 of DeepSpeed")
    # Table 2 does not print model chunks; run_table_1.sh has one layer per chunk for 530B.
    chunks = config.get("virtual_stages", row["model"]["layers"] // config["pp"])
    torch = config.get("ddp_impl") == "torch"
    table = " ".join(row["table"].split()[:2])
    return Scenario(
        f"Narayanan et al. 2021 (arXiv 2104.04473), {table}; step time of the printed TFLOP/s."
        " Micro-batch, model chunks and data parallelism (DDP) of the released run_table_1.sh.",
        {
            "model": gpt(row, row["model"]["vocab"]),
            "framework": "megatron-2021",
            "cluster": cluster(row, "selene"),
            "parallel": parallel(row, chunks, **when(torch, bucket="25 MiB")),
            "batch": batch(row),
            **schedule(row, chunks),
            "recompute": "full",
            "precision": "fp16",
            **when(torch, overlap={"gradients": True}),
        },
        result["step_time_s_derived"],
        f"arXiv 2104.04473, {table}: {result['hw_tflops_per_gpu']} TFLOP/s per GPU",
    )


ZERO_BUBBLE_SCHEDULES = {
    "1F1B": "1f1b",
    "1F1B-I": "interleaved_1f1b",
    "ZB-1p": "zb1p",
    "ZB-2p": "zb_h2",
}


def zero_bubble(row: Row) -> Scenario:
    config, rate = row.get("config", {}), row.get("result", {}).get("samples_per_gpu_per_s")
    table = " ".join(row.get("table", "").split()[:2])
    if rate is None:
        raise LeftOut("computed bubbles, profiled times and formulas")
    if table == "Table 10":
        raise LeftOut("Table 10: the optimizer once more, on rows of Table 4")
    if config["schedule"] == "ZB-V":
        raise LeftOut("ZB-V")
    if config["schedule"] not in ZERO_BUBBLE_SCHEDULES:
        raise LeftOut("ZB-2p*: micro-batch not certain")
    kind, chunks = ZERO_BUBBLE_SCHEDULES[config["schedule"]], config.get("virtual_stages", 1)
    samples = config["micro_batches"] * config["mbs"]
    full = config | {"tp": 1, "dp": 1, "gpus": config["pp"], "gbs": samples}
    row = row | {"config": full}
    return Scenario(
        f"Qi et al. 2023, Zero Bubble (arXiv 2401.10241), {table}; step time of the printed rate."
        " Assumed: the SentencePiece tokenizer of the authors' scripts, 32000 tokens; one layer per"
        " model chunk.",
        {
            "model": gpt(row, vocab=32000),
            "framework": "zero-bubble",
            "cluster": cluster(row, "zero-bubble"),
            "parallel": parallel(row, chunks),
            "batch": batch(row),
            "schedule": {
                "kind": kind,
                # --no-overlap-p2p-communication, which is of interleaving alone
                **when(chunks > 1, chunks=chunks, point_to_point="blocking"),
            },
            "recompute": "none",
            "precision": "fp16",
            **when(kind.startswith("zb"), overlap={"optimizer": True}),
        },
        samples / (rate * config["pp"]),
        f"arXiv 2401.10241, {table}: {rate} samples/s per GPU",
    )


def dgxc_h100(row: Row) -> Scenario:
    config, name = row["config"], row["model"].get("name", "")
    if not config["device"].startswith("H100"):
        raise LeftOut("not H100")
    if config["precision"] != "BF16":
        raise LeftOut("FP8")
    if row["framework"] != "NeMo/Megatron-Core":
        raise LeftOut("MaxText or PaxML")
    if "hidden" not in row["model"]:
        raise LeftOut("mixture of experts")
    kinds: dict[str, Section] = {
        "llama3.1": LLAMA,
        "nemotron4": {"positions": "rotary", "tied_embeddings": False, "bias": False},
        "gpt3": {"dropout": True},
    }
    file, tag = row["source"].split("@")
    largest = name == "nemotron4 340b"
    chunks = config.get("vp", 1)
    note = ""
    if name == "gpt3 175b":
        note = " Dropout and bf16 gradients are those of nemo_megatron/gpt3_175b_hydra.yaml."
    elif largest:
        note = (
            " Gradients are bf16, those of the head's weights deferred"
            " (nemotron/nemotron4-340b-synth.yaml)."
        )
        if "vp" not in config:
            chunks = 12
            note += " Chunks are those of the tags before and after."
    return Scenario(
        f"NVIDIA/dgxc-benchmarking {tag}, {file}. Flags are those of v25.02.02.{note}",
        {
            "model": gpt(row, row["model"]["vocab"], **kinds[name.split()[0]]),
            "framework": "mcore-2024",
            "cluster": cluster(row, "dgx-cloud-h100"),
            "parallel": parallel(
                row, chunks, **when(config["tp"] > 1, sequence_parallel=True)
            ),
            "batch": batch(row),
            **schedule(row, chunks, **when(largest, defer_head_gradient=True)),
            "recompute": "selective" if largest else "none",
            "precision": "bf16",
            **when(largest or name == "gpt3 175b", gradient_precision="bf16"),
            # ub_tp_comm_overlap: False in nemotron/nemotron4-340b-synth.yaml, which later tags lack
            **when(largest and tag.lstrip("v") <= "25.02.02", overlap={"tensor": 0}),
        },
        row["result"]["step_time_s"],
        f"dgxc-benchmarking {tag}, {file}",
    )


def fsdp(row: Row) -> Scenario:
    config, rate = row["config"], row["result"].get("tok_per_s")
    if config["precision"] not in ("bf16", "amp_bf16"):
        raise LeftOut("FP8")
    if not rate:
        raise LeftOut("no throughput")
    kind, memory = config["device"].split("_")
    zero2 = config["fsdp"] == "SHARD_GRAD_OP"
    return Scenario(
        "mosaicml/llm-foundry @ 8c8dd48, scripts/train/benchmarking/README.md; step time of the"
        " printed tokens/s. Biases and learned positions are in the printed parameter counts.",
        {
            "model": gpt(row, row["model"]["vocab"]),
            "framework": "fsdp-2023",
            "cluster": cluster(row, f"mosaicml-{kind}", device=f"{kind}-sxm-{memory}"),
            "parallel": parallel(row, **when(zero2, sharding="gradients")),
            "batch": batch(row),
            "recompute": config["recompute"],
            "precision": "bf16",
        },
        config["gbs"] * row["model"]["seq"] / rate,
        f"llm-foundry @ 8c8dd48: {rate} tokens/s",
    )


def bloom(row: Row) -> Scenario:
    config, model = row["config"], row["model"]
    if "step_time_s" not in row["result"]:
        raise LeftOut("out of memory" if row["result"].get("oom") else "no step time")
    # Where a table has no column NHEADS: 96 in the text above the runs of hidden size 14400, and
    # "all NHEADS=64 (above too)" in that above the "Final round comparison".
    heads = model.get("heads", 96 if model["hidden"] == 14400 else 64)
    stated = "" if "heads" in model else f" {heads} heads are those of the text, not of the table."
    # "320 GPUs, async: always hangs": with this many, launches were blocking. The script of the
    # production run exports CUDA_LAUNCH_BLOCKING=1 too.
    blocking = config["gpus"] >= 320
    fp32 = config["precision"].startswith("bf16")
    where = "README.md" if "line" not in row else f"chronicles-prequel.md, line {row['line']}"
    section = f": {row['section']}" if "line" in row else ""
    return Scenario(
        f"bigscience-workshop/bigscience @ 9e64ede, train/tr11-176B-ml/{where}{section}."
        f"{stated} Assumed: dropout; learned positions for ALiBi.",
        {
            "model": gpt(row | {"model": model | {"heads": heads}}, model["vocab_approx"]),
            "framework": {
                "base": "megatron-deepspeed",
                **APEX_NORM,
                **when(blocking, host={"blocking": True}),
            },
            "cluster": cluster(row, "jean-zay"),
            "parallel": parallel(row, **when(config["zero_stage"] == 1, sharding="optimizer")),
            "batch": batch(row),
            **schedule(row),
            "recompute": "full",
            "precision": "bf16" if fp32 else "fp16",
            **when(fp32, gradient_precision="fp32"),
        },
        row["result"]["step_time_s"],
        f"bigscience @ 9e64ede, {where}",
    )


def simumax_b200(row: Row) -> Scenario:
    cards: dict[str, Section] = {
        "llama3-70b": {"hidden": 8192, "heads": 64, "kv_heads": 8, "ffn": 28672},
        "llama3-405b": {"hidden": 16384, "heads": 128, "kv_heads": 16, "ffn": 53248},
    }
    config, name = row["config"], row["model"]["name"]
    if name not in cards:
        raise LeftOut("mixture of experts")
    row = row | {
        "model": row["model"] | cards[name],
        "config": config | {"gbs": config["micro_batches"] * config["mbs"] * config["dp"]},
    }
    return Scenario(
        "MooreThreads/SimuMax @ 4dcaae5, docs/b200/b200_release_v1.2_summary.json. Flags and the 16"
        " groups of keys and values of 405B are those of its run_pretrain_llama3.sh: no overlap.",
        {
            "model": gpt(row, vocab=128256, **LLAMA),
            "framework": "mcore-2024",
            "cluster": cluster(row, "simumax-b200"),
            "parallel": parallel(row, **when(config["tp"] > 1, sequence_parallel=True)),
            "batch": batch(row),
            **schedule(row, point_to_point="blocking"),
            "recompute": "none",
            "precision": "bf16",
            "overlap": {"gradients": False, "parameters": False, "tensor": 0},
        },
        row["result"]["step_time_s"],
        "SimuMax @ 4dcaae5, b200_release_v1.2_summary.json",
    )


GROUPS = [
    Group("vtrain", "vtrain_ground_truth.yaml", vtrain),
    Group("korthikanti", "korthikanti.yaml", korthikanti),
    Group("megatron_sc21", "megatron_sc21.yaml", megatron_sc21),
    Group("zero_bubble", "zero_bubble.yaml", zero_bubble),
    Group("dgxc_h100", "dgxc_nvidia.yaml", dgxc_h100),
    Group("fsdp_a100", "llm_foundry_fsdp.yaml", fsdp, "a100"),
    Group("fsdp_h100", "llm_foundry_fsdp.yaml", fsdp, "h100"),
    Group("bloom", "bloom_bigscience.yaml", bloom),
    Group("simumax_b200", "simumax_b200.yaml", simumax_b200),
]


# --------------------------------------------------------------------------------- all together


GLUE = "\u00a0"  # a space at which no line ends


def flow(value: Any) -> str:
    """YAML on one line, in the order of the keys."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}:{GLUE}{flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value).replace(" ", GLUE)
    return f'"{text}"' if set(text) & set(",:#") else text


def wrapped(text: str, indent: str) -> str:
    lines = textwrap.fill(text, 100, subsequent_indent=indent, break_on_hyphens=False)
    return lines.replace(GLUE, " ")


def text_of(row: Row, scenario: Scenario) -> str:
    published = {"step_time": f"{scenario.step_time:.8g} s", "source": scenario.source}
    tree = {"name": row["id"]} | scenario.sections | {"published": published}
    lines = [wrapped(f"# {scenario.comment}", "# ")]
    for key, value in tree.items():
        lines.append(wrapped(f"{key}: {flow(value)}", " " * len(f"{key}: {{")))
    return "\n".join(lines) + "\n"


def convert(group: Group, data: Path, out: Path) -> Count:
    count = Count()
    folder = out / group.name
    folder.mkdir(parents=True, exist_ok=True)
    for row in yaml.safe_load((data / group.file).read_text())["records"]:
        if not row.get("config", {}).get("device", "").startswith(group.device):
            continue
        try:
            text = text_of(row, group.convert(row))
        except LeftOut as reason:
            count.left_out[str(reason)] += 1
            continue
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as lack:
            count.left_out[f"not understood ({type(lack).__name__}: {lack})"] += 1
            continue
        (folder / f"{row['id']}.yaml").write_text(text)
        count.written += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    arguments = parser.parse_args()
    print(f"{'group':<14}{'written':>8}{'left out':>9}")
    for group in GROUPS:
        count = convert(group, arguments.data, arguments.out)
        reasons = "; ".join(f"{n} {why}" for why, n in count.left_out.most_common())
        print(f"{group.name:<14}{count.written:>8}{count.left_out.total():>9}  {reasons}".rstrip())


if __name__ == "__main__":
    main()
