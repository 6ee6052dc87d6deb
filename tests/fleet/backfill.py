"""History that was never scraped: blocks for a Prometheus, made by promtool from what the fleet
would have shown, and from what rules would have recorded of it.
"""

import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from fleet.page import samples_at
from support.monitoring_stack import Prometheus

STEP_S = 60
CHUNK_S = 7200
"""What a block holds; promtool reads a whole file for each block that it makes of it."""


def backfill(seed: int, hosts: int, begun_s: int, start_s: int, end_s: int, data: Path) -> None:
    """Write what a Prometheus would have scraped of the fleet from one Unix time to another.

    While promtool makes a block, the text of the next is written beside it.
    """
    with ThreadPoolExecutor(1) as beside:
        made: Future[None] | None = None
        for number, (from_s, to_s) in enumerate(_chunks(start_s, end_s)):
            text = data.parent / f"history-{number % 2}.om"
            with text.open("w") as lines:
                for now_s in range(from_s, to_s, STEP_S):
                    for host in range(hosts):
                        lines.writelines(samples_at(seed, host, begun_s, now_s))
                lines.write("# EOF\n")
            if made is not None:
                made.result()
            made = beside.submit(_promtool, "openmetrics", str(text), str(data))
        if made is not None:
            made.result()
    for text in data.parent.glob("history-?.om"):
        text.unlink()


def backfill_rules(server: Prometheus, rules: Path, start_s: int, end_s: int, data: Path) -> None:
    """Write what rules would have recorded of what a Prometheus holds."""
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
    """Write rules into a file for each step: what reads a recorded series comes a step later."""
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
    """Cut a time into pieces that lie in one block each."""
    while start_s < end_s:
        cut_s = min(end_s, start_s - start_s % CHUNK_S + CHUNK_S)
        yield start_s, cut_s
        start_s = cut_s


def _promtool(*words: str) -> None:
    """Let promtool make blocks; an end by Ctrl-C waits for the one that it is at."""
    command = ["promtool", "tsdb", "create-blocks-from", *words]
    made = subprocess.run(command, check=False, capture_output=True, start_new_session=True)
    if made.returncode:
        raise RuntimeError(f"promtool: {made.stderr.decode()[-2000:]}")
