"""Blocks of history for Prometheus, made by promtool from samples and from recording rules."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from fleet.hosts import samples_at
from support.monitoring_stack import Prometheus

STEP_S = 60
CHUNK_S = 7200
"""Length of a block; promtool reads the whole file for each block that it writes."""


def backfill(
    seed: int, hosts: int, fleet_start_s: int, start_s: int, end_s: int, data: Path
) -> None:
    """Write the samples of the fleet between two Unix times as blocks.

    While promtool writes a block, the text of the next one is made.
    """
    with ThreadPoolExecutor(1) as executor:
        block: Future[None] | None = None
        for number, (from_s, to_s) in enumerate(_chunks(start_s, end_s)):
            text = data.parent / f"history-{number % 2}.om"
            with text.open("w") as lines:
                for now_s in range(from_s, to_s, STEP_S):
                    for host in range(hosts):
                        lines.writelines(samples_at(seed, host, fleet_start_s, now_s))
                lines.write("# EOF\n")
            if block is not None:
                block.result()
            block = executor.submit(write_blocks, text, data)
        if block is not None:
            block.result()
    for text in data.parent.glob("history-?.om"):
        text.unlink()


def write_blocks(openmetrics: Path, data: Path) -> None:
    """Write the samples of a file in OpenMetrics format as blocks."""
    _promtool("openmetrics", str(openmetrics), str(data))


def backfill_rules(server: Prometheus, rules: Path, start_s: int, end_s: int, data: Path) -> None:
    """Write the series that rules record from the data of a Prometheus server."""
    _promtool(
        "rules",
        f"--url=http://{server.address}",
        f"--start={start_s}",
        f"--end={end_s}",
        f"--eval-interval={STEP_S}s",
        f"--output-dir={data}",
        str(rules),
    )


def steps_of(rules: Path, home: Path) -> list[Path]:
    """Split rules into files, so that a rule that reads a recorded series is in a later file."""
    step_of: dict[str, int] = {}
    steps: dict[int, list[dict[str, Any]]] = {}
    for group in yaml.safe_load(rules.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            read = [step for name, step in step_of.items() if name in rule["expr"]]
            step = max(read, default=0) + 1
            step_of[rule["record"]] = max(step, step_of.get(rule["record"], 0))
            name = f"{group['name']}.{len(steps.setdefault(step, []))}"
            steps[step].append({**group, "name": name, "rules": [rule]})
    files = []
    for step, groups in sorted(steps.items()):
        file = home / f"step-{step}.yaml"
        file.write_text(yaml.safe_dump({"groups": groups}), encoding="utf-8")
        files.append(file)
    return files


def _chunks(start_s: int, end_s: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a time range that are in one block each."""
    while start_s < end_s:
        cut_s = min(end_s, start_s - start_s % CHUNK_S + CHUNK_S)
        yield start_s, cut_s
        start_s = cut_s


def _promtool(*arguments: str) -> None:
    """Write blocks with promtool, in a session of its own, so that Ctrl-C does not end it."""
    command = ["promtool", "tsdb", "create-blocks-from", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, start_new_session=True)
    if done.returncode:
        raise RuntimeError(f"promtool failed: {done.stderr.decode()[-2000:]}")
