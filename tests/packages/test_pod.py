"""The manifests of the pod and the recipe of the image; `make drill` runs the pod."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from disksla.base.operating_system.machine import default_roots
from disksla.commands.cli import build_parser
from disksla.kernel.procfs import parse_mountinfo
from disksla.promise.configuration.settings import Settings
from disksla.promise.configuration.settings_file import terms_directories
from disksla.serve.http_server.connection import DEFAULT_LISTEN_ADDRESS
from pod import COMMAND, HOST, MANIFEST, bundle, pod

ROOT = Path(__file__).resolve().parent.parent.parent
RECIPE = (ROOT / "packaging" / "oci" / "Containerfile").read_text(encoding="utf-8")
HERE = Path(__file__).parent
MISSING = Path("/missing/directory")


def container() -> dict[str, Any]:
    return containers()["disksla"]


def containers() -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in pod()["containers"]}


def instruction(name: str) -> str:
    """Return the arguments of the last instruction of this name in the recipe, on one line."""
    found: str = re.findall(rf"^{name} ((?:.*\\\n)*.*)$", RECIPE, flags=re.MULTILINE)[-1]
    return found.replace("\\\n", "")


def test_daemon_accepts_the_options() -> None:
    for options in (container()["args"], json.loads(instruction("CMD"))):
        assert build_parser(("serve",)).parse_args(options).command == "serve"


def test_image_says_where_the_file_systems_of_the_host_are() -> None:
    name, _, directory = instruction("ENV").partition("=")
    roots = default_roots({name: directory})
    assert instruction("ENV") == HOST
    mounted = {mount["mountPath"] for mount in container()["volumeMounts"]}
    assert {str(roots.procfs), str(roots.udev_data.parent)} <= mounted
    assert {f"{roots.sysfs}/{each}" for each in ("class", "dev", "devices")} <= mounted


def test_host_file_systems_are_mounted_read_only() -> None:
    config = bundle(pod(), MISSING, HERE, HERE)
    binds = {mount["destination"]: mount for mount in config["mounts"] if mount["type"] == "bind"}
    of_host = {
        path: bind for path, bind in binds.items() if path.startswith(("/host/", "/var/log"))
    }
    assert len(of_host) >= 6
    assert all("ro" in bind["options"] for bind in of_host.values())
    assert "/host/sys" not in of_host, "read-only does not hold for what is mounted below it"


def test_nothing_is_mounted_below_what_is_mounted_of_sysfs() -> None:
    """`readOnly` of a hostPath volume is not recursive before Kubernetes 1.30."""
    paths = [each["hostPath"]["path"] for each in pod()["volumes"] if "hostPath" in each]
    text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    points = {mount.mount_point for mount in parse_mountinfo(text)}
    version_1 = "/sys/fs/cgroup/"  # of the hierarchies of cgroup v1, nothing is read
    below = [
        point
        for point in points
        for path in paths
        if path.startswith("/sys") and point.startswith(f"{path}/")
    ]
    assert [point for point in below if not point.startswith(version_1)] == []


def test_pod_has_no_privileges() -> None:
    config = bundle(pod(), MISSING, HERE, HERE)
    assert config["root"]["readonly"] is True
    assert config["process"]["noNewPrivileges"] is True
    assert config["process"]["capabilities"] == {}
    assert config["process"]["user"]["uid"] > 0
    assert "network" in {namespace["type"] for namespace in config["linux"]["namespaces"]}
    specification = pod()
    assert specification["securityContext"]["runAsNonRoot"] is True
    assert specification["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & specification.keys()


def test_missing_host_directory_is_replaced() -> None:
    specification = pod()
    for volume in specification["volumes"]:
        if "hostPath" in volume:
            volume["hostPath"]["path"] = str(MISSING)
    config = bundle(specification, MISSING, HERE, HERE.parent)
    sources = {mount["source"] for mount in config["mounts"] if mount["type"] == "bind"}
    assert sources == {str(HERE), str(HERE.parent)}


def test_only_detection_has_the_token_and_no_container_has_the_directory_of_kubelet() -> None:
    specification = pod()
    assert specification["automountServiceAccountToken"] is False
    [account] = [volume for volume in specification["volumes"] if "projected" in volume]
    users = [
        name
        for name, each in containers().items()
        if account["name"] in {mount["name"] for mount in each["volumeMounts"]}
    ]
    assert users == ["detect-kubernetes"]
    paths = {each["hostPath"]["path"] for each in specification["volumes"] if "hostPath" in each}
    of_sysfs = {"/sys/class", "/sys/dev", "/sys/devices", "/sys/fs/cgroup"}
    assert paths == {"/proc", *of_sysfs, "/run/udev", "/var/log/containers"}
    securities = {name: each["securityContext"] for name, each in containers().items()}
    assert all(security == securities["disksla"] for security in securities.values())


def test_daemon_reads_what_detection_writes() -> None:
    script = containers()["detect-kubernetes"]["command"][-1]
    output = script.split("--output ")[1].split()[0]
    directory = Path(output).parent
    assert directory in [each.path for each in terms_directories(None, Settings())]
    for name, is_read_only in (("disksla", True), ("detect-kubernetes", None)):
        [mount] = [
            mount
            for mount in containers()[name]["volumeMounts"]
            if mount["mountPath"] == str(directory)
        ]
        assert (mount["name"], mount.get("readOnly")) == ("terms", is_read_only)


def make_privileged(specification: dict[str, Any]) -> None:
    specification["containers"][0]["securityContext"]["privileged"] = True


def add_capability(specification: dict[str, Any]) -> None:
    capabilities = specification["containers"][0]["securityContext"]["capabilities"]
    capabilities["add"] = ["SYS_ADMIN"]


def add_unused_volume(specification: dict[str, Any]) -> None:
    specification["volumes"].append({"name": "dev", "hostPath": {"path": "/dev"}})


@pytest.mark.parametrize("change", [make_privileged, add_capability, add_unused_volume])
def test_unsupported_pod_is_rejected(change: Callable[[dict[str, Any]], None]) -> None:
    specification = copy.deepcopy(pod())
    change(specification)
    with pytest.raises(ValueError, match=r"privileges|without a mount"):
        bundle(specification, MISSING, HERE, HERE)


def test_image_and_pod_have_the_same_command_and_user() -> None:
    assert json.loads(instruction("ENTRYPOINT")) == [COMMAND]
    user = pod()["securityContext"]
    assert instruction("USER") == f"{user['runAsUser']}:{user['runAsGroup']}"


def test_files_copied_by_the_recipe_exist() -> None:
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", RECIPE, flags=re.MULTILINE)
    assert copied
    for name in " ".join(copied).split():
        assert (ROOT / name).exists(), name


def test_health_checks_use_the_port_of_the_daemon() -> None:
    [port] = container()["ports"]
    assert f":{port['containerPort']}" == DEFAULT_LISTEN_ADDRESS
    assert instruction("EXPOSE") == str(port["containerPort"])
    paths = {
        container()[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")
    }
    assert paths == {"/-/healthy", "/-/ready"}


def test_pod_monitor_selects_the_pods() -> None:
    monitor = yaml.safe_load((MANIFEST.parent / "podmonitor.yaml").read_text(encoding="utf-8"))
    [daemon_set] = [
        each
        for each in yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
        if each["kind"] == "DaemonSet"
    ]
    labels = daemon_set["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert labels[monitor["spec"]["jobLabel"]] == "disksla", "the rules select this job"
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True, "the namespace of a claim is not that of the pod"
    assert endpoint["port"] == container()["ports"][0]["name"]
    assert monitor["metadata"]["namespace"] == daemon_set["metadata"]["namespace"]
