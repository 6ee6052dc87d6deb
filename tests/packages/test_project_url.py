"""The address of the project: `url` in setup.cfg is its only source."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from render import OUT, evaluate, project_url

ROOT = Path(__file__).resolve().parent.parent.parent
URL = "https://disksla.test/home"
PARTS = ("exporter", "packaging", "systemd", "setup.cfg", "pyproject.toml", "README.md", "LICENSE")
SHIPPED = ("docs", "exporter/disksla", "grafana", "packaging", "systemd", "README.md")


@pytest.fixture(params=["", URL], ids=["without a URL", "with a URL"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tree(url: str, tmp_path: Path) -> Path:
    """Return a copy of the sources with this URL, in which packaging/tree makes an empty tree."""
    root = tmp_path / "tree"
    root.mkdir()
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copyfile
        copy(ROOT / part, root / part)
    setup = re.sub(r"^url = .*\n", "", (ROOT / "setup.cfg").read_text(), flags=re.MULTILINE)
    line = f"[metadata]\nurl = {url}" if url else "[metadata]"
    (root / "setup.cfg").write_text(setup.replace("[metadata]", line))
    (root / "packaging" / "tree").write_text('#!/bin/sh\nmkdir -p "$1"\n')
    return root


def run(tree: Path, script: str, program: str, shown: str) -> str:
    """Run a script of packaging/ with a stand-in for `program` that prints `shown` and fails."""
    stand_ins = tree / "stand-ins"
    stand_ins.mkdir()
    (stand_ins / program).write_text(f"#!/bin/sh\n{shown}\nexit 9\n")
    (stand_ins / program).chmod(0o755)
    done = subprocess.run(
        [tree / "packaging" / script, "dist"],
        env={"PATH": f"{stand_ins}:{os.environ['PATH']}", "SOURCE_DATE_EPOCH": "1790000000"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {1, 9}, done.stderr
    return done.stdout + done.stderr


def test_debian_homepage(tree: Path, url: str) -> None:
    control = run(tree, "deb", "dpkg-buildpackage", "cat debian/control")
    assert "Source: disksla-exporter" in control
    assert re.findall(r"^Homepage: (.*)$", control, flags=re.MULTILINE) == [url] * bool(url)


def test_rpm_url(tree: Path, url: str) -> None:
    arguments = run(tree, "rpm", "rpmbuild", """printf '<%s>\\n' "$@" """).splitlines()
    assert "<disksla_version 0.1.0>" in arguments
    assert (f"<disksla_url {URL}>" in arguments) == bool(url)
    assert any("disksla_url" in argument for argument in arguments) == bool(url)
    spec = (tree / "packaging" / "redhat" / "disksla-exporter.spec").read_text()
    assert "\n%{?disksla_url:URL: %{disksla_url}}\n" in spec


def test_image_label(tree: Path, url: str) -> None:
    printed = run(tree, "image", "podman", """printf '<%s>\\n' "$@" """).splitlines()
    arguments = [line for line in printed if line.startswith("<")]
    assert "<org.opencontainers.image.revision=unknown>" in arguments
    assert arguments[-2:] == ["<dist>", "<.>"]
    assert (f"<org.opencontainers.image.url={URL}>" in arguments) == bool(url)
    assert any("image.url" in argument for argument in arguments) == bool(url)


def test_wheel_metadata(tree: Path, url: str) -> None:
    program = "import setuptools; setuptools.setup(script_args=['-q', 'egg_info'])"
    subprocess.run([sys.executable, "-c", program], cwd=tree, check=True, capture_output=True)
    metadata = (tree / "exporter" / "disksla_exporter.egg-info" / "PKG-INFO").read_text()
    assert re.findall(r"^Home-page:(.*)$", metadata, flags=re.MULTILINE) == [f" {url}"] * bool(url)


def test_mixin_reads_the_same_line(tree: Path, url: str) -> None:
    assert project_url(tree / "setup.cfg") == url


def test_alerts_and_dashboards(url: str) -> None:
    config = json.dumps({"projectUrl": url})
    groups = evaluate("prometheusAlerts", config)["groups"]
    for alert in (rule for group in groups for rule in group["rules"]):
        assert alert["annotations"]["runbook_url"].endswith(f"/runbook#{alert['alert']}")
        assert URL not in alert["annotations"]["runbook_url"]
    for board in evaluate("grafanaDashboards", config).values():
        links = [link["url"] for link in board["links"] if not link["url"].startswith("/d/")]
        assert links == [url] * bool(url)


def test_runbook_of_a_site() -> None:
    config = "{ projectUrl: 'https://disksla.test', runbookUrl: 'https://wiki.test/disks' }"
    alerts = yaml.safe_dump(evaluate("prometheusAlerts", config))
    assert "https://wiki.test/disks#DiskStalled" in alerts
    assert "https://disksla.test" not in alerts


@pytest.mark.skipif(bool(project_url()), reason="the project has a public address")
def test_no_invented_address_ships() -> None:
    address = re.compile(r"https?://[\w.-]*disksla\.|disksla\.(example|com|org|io|dev|net)\b")
    for place in SHIPPED:
        path = ROOT / place
        files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
        for file in files:
            if "__pycache__" not in file.parts and file.suffix != ".png":
                assert not address.search(file.read_text(encoding="utf-8")), file
    for file in OUT.rglob("*.*"):
        # A daemon that Prometheus scrapes serves the runbook: an address from a label.
        assert not re.search(r"://(?!\{\{ )", file.read_text(encoding="utf-8")), file
