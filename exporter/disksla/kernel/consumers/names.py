"""The names of consumers: units, containers and pods by the path of a control group; programs.

Command lines, arguments, users and files are never part of a name.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from disksla.kernel.consumers.consumption import KERNEL

_LONGEST = 128
_SHORT_ID = 12  # digits of the id of a container, as Docker and Podman show it
_CONTAINER_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_POD = re.compile(
    r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})"
    r"(?![0-9a-f])"
)
"""The UID of a pod, in which systemd writes _ for -; that of a static pod is a hash."""
_RUNTIME = re.compile(r"docker|libpod|crio|cri-containerd|nerdctl|buildkit")
_RUNTIMES = {"libpod": "podman", "crio": "cri-o", "cri-containerd": "containerd"}
"""Names that people know, where it is another."""
_LXC = re.compile(r"lxc\.(?:payload|monitor)\.(.+)")
_USER_MANAGER = re.compile(r"user@\d+\.service")
_UNITS = (".service", ".scope", ".mount", ".swap", ".socket")
_LOG_OF_CONTAINER = re.compile(r"([^_/]+)_([^_/]+)_([^_/]+)-([0-9a-f]{64})\.log")
_NUMBER_BETWEEN = re.compile(r"[-:#.]\d+(?=[-:#.]|$)")
_NOT_IN_PROGRAMS = re.compile(r"[^A-Za-z0-9._:@/+-]")


def consumer_of(
    path: str, pod_names: Mapping[str, str] | None = None, depth: int | None = None
) -> str:
    """Return whose group this is, by its path from the root of all groups.

    The deepest match wins: a unit in a container or in a unit has that before it. The root has the
    threads of the kernel. `pod_names` are those of `pod_names_of`. Root named the first `depth`
    parts of the path. Users name those below, and below their own manager: whatever these are
    called, the name begins with that of the group that is the user's.
    """
    parts = [part for part in path.split("/") if part]
    if not parts:
        return KERNEL
    managers = (at for at, part in enumerate(parts, 1) if _USER_MANAGER.fullmatch(part))
    by_root = min(next(managers, len(parts)), len(parts) if depth is None else max(1, depth))
    slices = [part for part in parts[:by_root] if part.endswith(".slice")]
    outer = _name(parts[:by_root], pod_names or {}) or (
        slices[-1] if slices else f"/{'/'.join(parts[:by_root])}"
    )
    inner = _name(parts[by_root:], {})
    return _shown(outer if inner is None else f"{outer}/{inner}")


def _name(parts: Sequence[str], pod_names: Mapping[str, str]) -> str | None:
    """Return the container, pod or unit; None without any."""
    for index in reversed(range(len(parts))):
        container = _container(parts[: index + 1], pod_names)
        if container is not None:
            unit = _unit(parts[index + 1 :])
            return container if unit is None else f"{container}/{unit}"
    return _pod(parts) or _unit(parts)


def _container(parts: Sequence[str], pod_names: Mapping[str, str]) -> str | None:
    """Return the container of which the last part is the group; None if it is none."""
    *above, name = parts
    lxc = _LXC.fullmatch(name)
    if lxc or above[-1:] == ["lxc"]:
        return f"lxc {lxc[1] if lxc else name}"
    found = _CONTAINER_ID.search(name)
    if found is None:
        return None
    if found[0] in pod_names:
        return pod_names[found[0]]
    short = found[0][:_SHORT_ID]
    if pod := _pod(parts):
        return f"{pod}/{short}"
    if "ecs" in above:
        return f"ecs {above[-1]}/{short}"
    runtime = _RUNTIME.search("/".join((*above[-1:], name)))
    return f"{_RUNTIMES.get(runtime[0], runtime[0]) if runtime else 'container'} {short}"


def _pod(parts: Sequence[str]) -> str | None:
    pods = [found[1] for part in parts if (found := _POD.search(part))]
    return f"pod {pods[-1].replace('_', '-')}" if pods else None


def _unit(parts: Sequence[str]) -> str | None:
    """Return the deepest unit of systemd, behind the unit that contains it; None without any."""
    units = [part.removeprefix("_") for part in parts if part.endswith(_UNITS)]
    return "/".join(dict.fromkeys((units[0], units[-1]))) if units else None


def _shown(name: str) -> str:
    """Return a name without control characters, of limited length."""
    return "".join(filter(str.isprintable, name))[:_LONGEST]


def pod_names_of(log_files: Iterable[str]) -> dict[str, str]:
    """Return namespace/pod/container by the id of the container.

    `log_files` are the names of the links in /var/log/containers, which kubelet makes for each
    container: POD_NAMESPACE_CONTAINER-ID.log.
    """
    found = map(_LOG_OF_CONTAINER.fullmatch, log_files)
    return {each[4]: _shown(f"{each[2]}/{each[1]}/{each[3]}") for each in found if each}


def program_of(comm: str) -> str:
    """Return the name of a program by that of its thread, without numbers.

    The kernel has 15 bytes of it, and a program may set it to anything. Of a thread of the kernel,
    the part before / remains.
    """
    if comm.startswith("jbd2/"):
        return "jbd2"
    name = _NUMBER_BETWEEN.sub("", _NOT_IN_PROGRAMS.sub("", comm).split("/", 1)[0])
    return name.rstrip("0123456789").rstrip("-:#.")
