"""What root in a container of the chart can write of the node, with the same mounts."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

CHART = Path(__file__).parents[1] / "packages" / "chart" / "expected.yaml"
ATTACK = """
mount -t cgroup2 none /sys/fs/cgroup || { echo NOT TESTED: no cgroup v2; exit; }
group=/sys/fs/cgroup/disksla-test-$$
mkdir $group
host=$(mktemp -d)
mount -t tmpfs none $host
for path in "$@"; do
    mkdir -p $host$path
    mount --rbind $path $host$path
    mount -o remount,bind,ro $host$path
done
for file in cgroup.freeze cgroup.kill; do
    setpriv --bounding-set=-all,+perfmon --inh-caps=-all --ambient-caps=-all \\
        sh -c "echo 1 >$host$group/$file" 2>/dev/null && echo $file
done
rmdir $group
umount --recursive $host
rmdir $host
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: needs root")


def written(*paths: str) -> list[str]:
    """Return the files of a control group that root can write, where these are mounted."""
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ATTACK, "sh", *paths]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    if "NOT TESTED" in ended.stdout:
        pytest.skip(ended.stdout.strip())
    return ended.stdout.split()


def containers() -> list[list[str]]:
    """Return the directories of the node that each container has which is not privileged."""
    documents = yaml.safe_load_all(CHART.read_text(encoding="utf-8"))
    pod: dict[str, Any] = next(
        each["spec"]["template"]["spec"] for each in documents if each["kind"] == "DaemonSet"
    )
    paths = {
        each["name"]: each["hostPath"]["path"] for each in pod["volumes"] if "hostPath" in each
    }
    return [
        [paths[mount["name"]] for mount in each["volumeMounts"] if mount["name"] in paths]
        for each in pod["containers"]
        if not each["securityContext"]["privileged"]
    ]


def test_no_container_writes_to_control_groups() -> None:
    """`readOnly` of Kubernetes is not recursive: with all of /sys, both files can be written."""
    assert written("/sys") == ["cgroup.freeze", "cgroup.kill"]
    assert len(containers()) == 4
    for paths in containers():
        assert written(*(path for path in paths if Path(path).exists())) == []
