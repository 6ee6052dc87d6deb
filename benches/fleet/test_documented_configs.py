"""Prometheus accepts the configurations in docs/fleet.md."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"
YAML = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
BLOCKS = [block for block in YAML if re.search("^scrape_configs:", block, flags=re.MULTILINE)]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="NOT TESTED: promtool is missing")
@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_promtool_accepts_the_configuration(block: str, tmp_path: Path) -> None:
    for name in ("prometheus_rules.yaml", "prometheus_alerts.yaml"):
        shutil.copy(PAGE.parents[1] / "grafana" / "out" / name, tmp_path)
    config = tmp_path / "prometheus.yml"
    config.write_text(block)
    agent = ["--agent"] if block.startswith("# agent") else []
    done = subprocess.run(
        ["promtool", "check", "config", *agent, config],
        check=False,
        capture_output=True,
        text=True,
    )
    if missing := re.search(r"field (\w+_sd_configs) not found", done.stderr):
        pytest.skip(f"NOT TESTED: this Prometheus was built without {missing[1]}")
    assert done.returncode == 0, done.stdout + done.stderr
