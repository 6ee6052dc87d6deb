"""The image and the pod, as far as they are papers; `make drill` runs the pod."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from disksla.cli import build_parser
from disksla.commands._options import roots_of
from disksla.system.roots import Roots
from disksla.web.listen import DEFAULT_LISTEN_ADDRESS
from pod import COMMAND, MANIFEST, bundle, pod

ROOT = Path(__file__).resolve().parent.parent.parent
RECIPE = (ROOT / "packaging" / "oci" / "Containerfile").read_text(encoding="utf-8")
HERE = Path(__file__).parent
OTHER = Path("/nowhere/else")


def container() -> dict[str, Any]:
    [only] = pod()["containers"]
    assert isinstance(only, dict)
    return only


def instruction(name: str) -> str:
    """Give what the last such instruction of the recipe says, on one line."""
    found: str = re.findall(rf"^{name} ((?:.*\\\n)*.*)$", RECIPE, flags=re.MULTILINE)[-1]
    return found.replace("\\\n", "")


def test_the_daemon_takes_the_options() -> None:
    for words in (container()["args"], json.loads(instruction("CMD"))):
        arguments = build_parser(("serve",)).parse_args(words)
        assert roots_of(arguments) == Roots(
            procfs=Path("/host/proc"),
            sysfs=Path("/host/sys"),
            udev_data=Path("/host/run/udev/data"),
        )


def test_the_trees_that_it_reads_are_the_hosts() -> None:
    made = bundle(pod(), OTHER, HERE, HERE)
    binds = {mount["destination"]: mount for mount in made["mounts"] if mount["type"] == "bind"}
    for tree in ("/proc", "/sys"):
        assert binds[f"/host{tree}"]["source"] == tree
        assert "ro" in binds[f"/host{tree}"]["options"]
    assert "ro" in binds["/host/run/udev"]["options"]


def test_it_has_no_right_and_no_name() -> None:
    made = bundle(pod(), OTHER, HERE, HERE)
    assert made["root"]["readonly"] is True
    assert made["process"]["noNewPrivileges"] is True
    assert made["process"]["capabilities"] == {}
    assert made["process"]["user"]["uid"] > 0
    assert "network" in {space["type"] for space in made["linux"]["namespaces"]}
    specification = pod()
    assert specification["securityContext"]["runAsNonRoot"] is True
    assert specification["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & specification.keys()


def test_what_is_not_there_is_replaced_by_nothing() -> None:
    specification = pod()
    for volume in specification["volumes"]:
        if "hostPath" in volume:
            volume["hostPath"]["path"] = str(OTHER)
    made = bundle(specification, OTHER, HERE, HERE.parent)
    sources = {mount["source"] for mount in made["mounts"] if mount["type"] == "bind"}
    assert sources == {str(HERE), str(HERE.parent)}


def privileged(specification: dict[str, Any]) -> None:
    specification["containers"][0]["securityContext"]["privileged"] = True


def a_capability(specification: dict[str, Any]) -> None:
    rights = specification["containers"][0]["securityContext"]["capabilities"]
    rights["add"] = ["SYS_ADMIN"]


def a_volume_for_nothing(specification: dict[str, Any]) -> None:
    specification["volumes"].append({"name": "dev", "hostPath": {"path": "/dev"}})


@pytest.mark.parametrize("change", [privileged, a_capability, a_volume_for_nothing])
def test_a_pod_that_wants_more_is_not_tried_as_if_it_did_not(
    change: Callable[[dict[str, Any]], None],
) -> None:
    specification = copy.deepcopy(pod())
    change(specification)
    with pytest.raises(ValueError, match=r"rights|mounted nowhere"):
        bundle(specification, OTHER, HERE, HERE)


def test_the_image_runs_what_the_pod_asks_for() -> None:
    assert json.loads(instruction("ENTRYPOINT")) == [COMMAND]
    whose = pod()["securityContext"]
    assert instruction("USER") == f"{whose['runAsUser']}:{whose['runAsGroup']}"


def test_the_recipe_copies_what_there_is() -> None:
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", RECIPE, flags=re.MULTILINE)
    assert copied
    for name in " ".join(copied).split():
        assert (ROOT / name).exists(), name


def test_it_is_asked_where_it_answers() -> None:
    [port] = container()["ports"]
    assert f":{port['containerPort']}" == DEFAULT_LISTEN_ADDRESS
    assert instruction("EXPOSE") == str(port["containerPort"])
    asked = {
        container()[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")
    }
    assert asked == {"/-/healthy", "/-/ready"}


def test_prometheus_finds_the_pods() -> None:
    monitor = yaml.safe_load((MANIFEST.parent / "podmonitor.yaml").read_text(encoding="utf-8"))
    [daemon_set] = [
        one
        for one in yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
        if one["kind"] == "DaemonSet"
    ]
    labels = daemon_set["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"] == labels
    assert labels[monitor["spec"]["jobLabel"]] == "disksla", "the rules look for that job"
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] == container()["ports"][0]["name"]
    assert monitor["metadata"]["namespace"] == daemon_set["metadata"]["namespace"]
