"""What docs/fleet.md tells people to write is accepted by the programs that read it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PAPER = Path(__file__).parents[2] / "docs" / "fleet.md"
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAPER.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="NOT TESTED: promtool is missing")
@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_prometheus_takes_the_configuration(block: str, tmp_path: Path) -> None:
    for name in ("prometheus_rules.yaml", "prometheus_alerts.yaml"):
        shutil.copy(PAPER.parents[1] / "grafana" / "out" / name, tmp_path)
    config = tmp_path / "prometheus.yml"
    config.write_text(block)
    agent = ["--agent"] if block.startswith("# agent") else []
    checked = subprocess.run(
        ["promtool", "check", "config", *agent, config],
        check=False,
        capture_output=True,
        text=True,
    )
    if unable := re.search(r"field (\w+_sd_configs) not found", checked.stderr):
        pytest.skip(f"NOT TESTED: this Prometheus was built without {unable[1]}")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_there_is_something_to_check() -> None:
    assert len(BLOCKS) == 8
