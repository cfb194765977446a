"""Writes reference.json: the first losses of every workload, in float64 by PyTorch. A time counts only for who reproduces them.

python -m bench.write_reference
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

from bench.torch_net import Training, runner
from bench.workloads import workloads

STEPS = 20
FILE = Path(__file__).with_name("reference.json")


def main() -> None:
    losses: dict[str, list[float]] = {}
    for workload in workloads().values():
        step = runner(Training(workload, "cpu", torch.float64), graph=False)
        losses[workload["name"]] = [float(f"{float(step()):.9g}") for _ in range(STEPS)]
        print(workload["name"], losses[workload["name"]][0], losses[workload["name"]][-1], flush=True)
    lines = ",\n".join(f'  "{name}": {json.dumps(values)}' for name, values in losses.items())
    FILE.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
