"""Print what badge, headline, sentence, `top`, `check`, alert and panel say of each situation.

A real daemon samples simulated disks, and a real Prometheus has the committed rules. Alerts are
those whose expression holds; they need not have waited long enough to fire.
"""

import argparse
import html
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from browser.conftest import start_situation
from browser.machine import SimulatedDisk
from browser.situations import Situation
from support.daemon_process import DISKSLA, Daemon
from support.monitoring_stack import Prometheus, prometheus
from support.scenarios import SCENARIOS

_OUT = Path(__file__).parents[2] / "grafana" / "out"
_DISKS = {
    "vda": ("the limit of the disk", "iops-300-deep"),
    "nvme1n1": ("the limit of the machine", "iops-300-deep"),
    "nvme2n1": ("the limit of the machine", "iops-300-deep"),
    "vdc": ("less than promised", "below-60-of-100"),
    "vdd": ("slow", "unlimited-slow"),
    "vde": ("fine", "steady-90"),
    "vdf": ("a mixture: at the limit in turns", "burst-in-turns"),
}
_CONFIGURATION = """
disks:
  - {match: {device: vda}, terms: {budget: sum, iops: 300}}
  - {match: {device: nvme1n1}, terms: {budget: sum, iops: 3000}}
  - {match: {device: nvme2n1}, terms: {budget: sum, iops: 3000}}
  - {match: {device: vdc}, terms: {budget: sum, iops: 100}}
  - {match: {device: vdd}, terms: {budget: sum, iops: 1000, latency: 1ms}}
  - {match: {device: vde}, terms: {budget: sum, iops: 1000, latency: 10ms}}
  - match: {device: vdf}
    terms: {budget: sum, iops: 300, burst: {iops: 2000, iops_credits: 2000}}
machine: {limits: {budget: sum, iops: 600}, exclude: ['^vd']}
"""


def situation(names: Sequence[str]) -> Situation:
    """Return these disks; few of them need less of a CPU to be simulated in time."""
    disks = [
        SimulatedDisk(name, replace(SCENARIOS[scenario], seconds=60.0))
        for name, (_, scenario) in _DISKS.items()
        if not names or name in names
    ]
    return Situation(tuple(disks), _CONFIGURATION)


def said_of(daemon: Daemon, server: Prometheus) -> dict[str, dict[str, str]]:
    """Return what is said of each disk, by place."""
    page = daemon.get("/")[1]
    url = f"http://{daemon.address}"
    documents = {
        each["device"]: each for each in json.loads(daemon.get("/api/v1/disks")[1])["disks"]
    }
    top = _printed("top", "-n", "1", f"--url={url}")
    check = ("check", f"--url={url}", "--critical=slow=10%,below=10%,stalled")
    said = {}
    for name, document in documents.items():
        badge = re.search(rf">{name}</a> <span class=\"badge\"><i .*?</i>(.*?)</span>", page)
        said[name] = {
            "badge": html.unescape(badge[1]) if badge else "",
            "sentence": document["sentences"][0],
            "top": next((line.strip() for line in top if name in line.split()[:1]), ""),
            "check": _printed(*check, name)[0].partition(" | ")[0],
            "alert": "; ".join(_alerts(server, name)) or "none",
            "panel": _panel(server, name),
        }
    headline = re.search("<h1>(.*?)</h1>", page)
    assert headline is not None
    return {"all": {"headline": html.unescape(headline[1])}, **said}


def _printed(*arguments: str) -> list[str]:
    command = [str(DISKSLA), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


def _alerts(server: Prometheus, name: str) -> list[str]:
    """Return the names and descriptions of the alerts about a disk, without what identifies it."""
    alerts = server.get("/api/v1/alerts")["data"]["alerts"]
    return [
        f"{each['labels']['alertname']}: {each['annotations']['description']}"
        for each in alerts
        if name == each["labels"].get("device")
    ]


def _panel(server: Prometheus, name: str) -> str:
    """Return what the panel *State* of the dashboard *Disk* shows."""
    panels = json.loads((_OUT / "dashboards" / "disk.json").read_text(encoding="utf-8"))["panels"]
    [panel] = [each for each in panels if each["title"] == "State"]
    expr = panel["targets"][0]["expr"].replace("$__rate_interval", "2m").replace("$device", name)
    found = server.query(re.sub(r"\$\w+", ".*", expr))
    if not found:
        return "no data"
    mappings = panel["fieldConfig"]["defaults"]["mappings"]
    [texts] = [each["options"] for each in mappings if each["type"] == "value"]
    return str(texts[found[0]["value"][1]]["text"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run for a time, and print what is said then."""
    parser = argparse.ArgumentParser(prog="situations", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="how long the disks are busy")
    parser.add_argument("--only", nargs="*", default=(), choices=_DISKS, help="some of the disks")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="disksla-situations-")))
        daemon = start_situation(situation(options.only), home, stack)
        target = {"job_name": "disksla", "static_configs": [{"targets": [daemon.address]}]}
        rules = [str(_OUT / f"prometheus_{each}.yaml") for each in ("rules", "alerts")]
        document = {
            "global": {"scrape_interval": "5s"}, "rule_files": rules, "scrape_configs": [target],
        }  # fmt: skip
        (home / "prometheus.yml").write_text(json.dumps(document))
        server = stack.enter_context(prometheus(home / "prometheus.yml", home / "data"))
        time.sleep(options.seconds)
        for name, places in said_of(daemon, server).items():
            sys.stdout.write(f"\n{name}: {_DISKS.get(name, ('',))[0]}\n")
            for place, text in places.items():
                sys.stdout.write(f"  {place:10}{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
