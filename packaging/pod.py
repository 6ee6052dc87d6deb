"""Convert the pod of packaging/kubernetes for an OCI runtime, to test it without a kubelet.

    python packaging/pod.py ROOT CONFIG EMPTY >bundle/config.json

ROOT is the file system of the image, and CONFIG the directory mounted for the ConfigMap. EMPTY is
mounted for directories that the host lacks, such as /run/udev without udevd. Namespaces, mounts,
user and capabilities are derived from the manifest as the kubelet does it. The network namespace
has only a loopback interface.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

MANIFEST = Path(__file__).resolve().parent / "kubernetes" / "daemonset.yaml"
COMMAND = "/usr/bin/disksla"
"""Entry point of the image."""
HOST = "DISKSLA_HOST=/host"
"""Environment of the image."""

OWN_MOUNTS = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
    {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "ro"]},
]


def pod() -> dict[str, Any]:
    """Return the specification of the pod."""
    documents = yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
    [daemon_set] = [each for each in documents if each["kind"] == "DaemonSet"]
    specification: dict[str, Any] = daemon_set["spec"]["template"]["spec"]
    return specification


def bundle(
    specification: Mapping[str, Any], root: Path, config: Path, empty: Path
) -> dict[str, Any]:
    """Return the configuration of the daemon's container for the runtime.

    Raises ValueError if the pod needs privileges or volumes that are not supported here.
    """
    [container] = [each for each in specification["containers"] if each["name"] == "disksla"]
    user, security = specification["securityContext"], container["securityContext"]
    if security["privileged"] or security["capabilities"] != {"drop": ["ALL"]}:
        raise ValueError("found a pod with privileges; expected one without capabilities")
    return {
        "ociVersion": "1.0.2",
        "root": {"path": str(root), "readonly": security["readOnlyRootFilesystem"]},
        "process": {
            "user": {
                "uid": user["runAsUser"],
                "gid": user["runAsGroup"],
                "additionalGids": [user["fsGroup"]],
            },
            "args": [COMMAND, *container["args"]],
            "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", HOST],
            "cwd": "/",
            "noNewPrivileges": not security["allowPrivilegeEscalation"],
            "capabilities": {},
        },
        "mounts": [*OWN_MOUNTS, *_mounts(specification, container, config, empty)],
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")],
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"],
        },
    }


def _mounts(
    specification: Mapping[str, Any], container: Mapping[str, Any], config: Path, empty: Path
) -> Iterator[dict[str, Any]]:
    volumes = {volume["name"]: volume for volume in specification["volumes"]}
    others = [each for each in specification["containers"] if each is not container]
    of_others = {mount["name"] for each in others for mount in each["volumeMounts"]}
    for mount in container["volumeMounts"]:
        volume = volumes.pop(mount["name"])
        entry: dict[str, Any] = {"destination": mount["mountPath"]}
        if "emptyDir" in volume:
            entry |= {"type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=1777"]}
        else:
            source = Path(volume["hostPath"]["path"]) if "hostPath" in volume else config
            source = source if source.exists() else empty
            is_slave = mount.get("mountPropagation") == "HostToContainer"
            options = [
                "rbind",
                "rslave" if is_slave else "rprivate",
                "ro" if mount.get("readOnly") else "rw",
            ]
            entry |= {"type": "bind", "source": str(source), "options": options}
        yield entry
    unused = volumes.keys() - of_others
    if unused:
        raise ValueError(f"found volumes without a mount: {', '.join(unused)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("config", type=Path)
    parser.add_argument("empty", type=Path)
    options = parser.parse_args()
    json.dump(bundle(pod(), options.root, options.config, options.empty), sys.stdout, indent=2)
