"""The pod of packaging/kubernetes as an OCI runtime takes it, to be tried where no kubelet is.

    python packaging/pod.py ROOT CONFIG EMPTY >bundle/config.json

ROOT is the file system of the image, CONFIG the directory that stands in for the ConfigMap, EMPTY
one for what this host lacks, such as /run/udev without a udevd. What the kubelet and its runtime
make of the manifest is made here by hand: namespaces, mounts, user, rights. The network is the
pod's own, with nothing but loopback.
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
"""The image's entry point."""

OWN_MOUNTS = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
    {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "ro"]},
]


def pod() -> dict[str, Any]:
    """Give the specification of the pod."""
    documents = yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
    [daemon_set] = [one for one in documents if one["kind"] == "DaemonSet"]
    specification: dict[str, Any] = daemon_set["spec"]["template"]["spec"]
    return specification


def bundle(
    specification: Mapping[str, Any], root: Path, config: Path, empty: Path
) -> dict[str, Any]:
    """Give the configuration of the runtime."""
    [container] = specification["containers"]
    whose, rights = specification["securityContext"], container["securityContext"]
    if rights["privileged"] or rights["capabilities"] != {"drop": ["ALL"]}:
        raise ValueError("the pod has rights that are not known how to be given here")
    return {
        "ociVersion": "1.0.2",
        "root": {"path": str(root), "readonly": rights["readOnlyRootFilesystem"]},
        "process": {
            "user": {
                "uid": whose["runAsUser"],
                "gid": whose["runAsGroup"],
                "additionalGids": [whose["fsGroup"]],
            },
            "args": [COMMAND, *container["args"]],
            "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
            "cwd": "/",
            "noNewPrivileges": not rights["allowPrivilegeEscalation"],
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
    for mount in container["volumeMounts"]:
        volume = volumes.pop(mount["name"])
        made: dict[str, Any] = {"destination": mount["mountPath"]}
        if "emptyDir" in volume:
            made |= {"type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=1777"]}
        else:
            source = Path(volume["hostPath"]["path"]) if "hostPath" in volume else config
            source = source if source.exists() else empty
            spread = "rslave" if mount.get("mountPropagation") == "HostToContainer" else "rprivate"
            right = "ro" if mount.get("readOnly") else "rw"
            made |= {"type": "bind", "source": str(source), "options": ["rbind", spread, right]}
        yield made
    if volumes:
        raise ValueError(f"volumes that are mounted nowhere: {', '.join(volumes)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("config", type=Path)
    parser.add_argument("empty", type=Path)
    given = parser.parse_args()
    json.dump(bundle(pod(), given.root, given.config, given.empty), sys.stdout, indent=2)
