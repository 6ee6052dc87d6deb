"""Time that ten thousand of each thing take that an operator, a machine or a client supplies.

A row has the CPU time of a quarter of them and of all, and the ratio: 4 is proportional to their
number, 16 would be the square of it.
"""

import gc
import time
from collections.abc import Callable, Iterator

from disksla.base.schema.yaml_file import parse_record
from disksla.base.units import GIB
from disksla.kernel.disks.csi_volume import with_csi_volumes
from disksla.kernel.disks.disk import Disk
from disksla.kernel.disks.nfs_mounts import nfs_disks
from disksla.kernel.disks.stacking import with_stacking
from disksla.kernel.nfs import parse_mountstats
from disksla.kernel.procfs import parse_mountinfo
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.configuration import find_disk, match_disks, shadowed_entries
from disksla.promise.configuration.configuration import Configuration
from disksla.promise.configuration.matched import Matched, changes, with_kubernetes_volumes
from disksla.promise.configuration.settings import DiskEntry, DiskMatch, Settings
from disksla.promise.configuration.terms_file import KubernetesVolume, TermsContent, TermsFile
from disksla.serve.metrics.collector import SnapshotCollector, make_registry
from disksla.serve.metrics.render import render_metrics
from disksla.state.history.history import History
from disksla.state.pipeline.advance import advance, configure
from disksla.state.pipeline.restore import PreviousRun
from disksla.state.pipeline.saved_state import decode, encode
from disksla.state.pipeline.snapshot import take_snapshot
from disksla.state.pipeline.state import State, initial_state, to_saved_state
from disksla.state.pipeline.tick import Tick
from disksla.verdict.interval.interval import Clocks

MANY = 10_000
PART = 4
CATALOG = load_catalog()

Work = Callable[[], object]


def entries(count: int, **value_of: str) -> tuple[DiskEntry, ...]:
    """Return entries; each value has a place for its number."""
    return tuple(
        DiskEntry(
            match=DiskMatch(**{key: value.format(number) for key, value in value_of.items()}),
            terms="yandex.network-hdd",
        )
        for number in range(count)
    )


def disks(count: int) -> tuple[Disk, ...]:
    """Return disks with a serial number and a mount point each."""
    return tuple(
        Disk(
            f"sd{number}",
            major=8 + number // 2**20,
            minor=number,
            size_bytes=100 * GIB,
            serial=f"volume-{number:06d}",
            model="disk",
            mount_points=(f"/data/{number}",),
            volume_handle=f"handle-{number}",
        )
        for number in range(count)
    )


def diskstats(count: int, reads: int) -> str:
    """Return the text of /proc/diskstats of disks that are all busy."""
    return "".join(
        f"   8 {number} sd{number} {reads} 0 {8 * reads} {reads} 0 0 0 0 1 {reads} {reads}\n"
        for number in range(count)
    )


def clocks(tick: int) -> Clocks:
    """Return the clocks at a tick."""
    return Clocks(1000 + tick / 10, 1000 + tick / 10, 1.7e9 + tick / 10)


def mountinfo(count: int, device: str, root: str, point: str) -> str:
    """Return a mount table, in which `device`, `root` and `point` are with the number of each."""
    line = f"{{0}} 1 {device} {root} {point} rw - ext4 /dev/sd rw\n"
    return "".join(line.format(number) for number in range(count))


def terms(count: int) -> Iterator[tuple[str, Work]]:
    """Yield what is done with entries, beside 500 disks."""
    some = disks(500)
    text = "disks:\n" + "".join(
        f"- {{match: {{serial: gone-{number}}}, terms: yandex.network-hdd}}\n"
        for number in range(count // 2)
    )
    data = text.encode()
    yield (
        "entries of terms files read, 5,000 each",
        lambda: [parse_record(data, "f.yml", TermsContent, {}) for _ in range(2)],
    )
    broad = {"model": "disk", "mountpoint": "/data/{}/main"}
    for name, found in (
        ("entries that match nothing", entries(count, serial="gone-{}")),
        ("entries that match a disk each", entries(count, serial="volume-{:06d}")),
        ("entries that match every disk", entries(count, model="disk")),
        ("entries by model and path below a mount point", entries(count, **broad)),
    ):
        configuration = Configuration(Settings(disks=found), CATALOG)
        yield name, lambda configuration=configuration: _matched(configuration, some)  # type: ignore[misc]
    settings = Settings(disks=entries(count, serial="volume-{}", model="disk"))
    yield "entries compared by check-config", lambda: shadowed_entries(settings)


def _matched(configuration: Configuration, some: tuple[Disk, ...]) -> None:
    changes(Matched(configuration), match_disks(configuration, some))


def volumes(count: int) -> Iterator[tuple[str, Work]]:
    """Yield what is done with volumes of Kubernetes, as many as disks."""
    known = tuple(KubernetesVolume("d", f"handle-{number}") for number in range(count))
    file = TermsFile("f", "metadata", "f", 0.0, volumes=known)
    many = disks(count)
    yield "volumes of Kubernetes", lambda: with_kubernetes_volumes(many, (file,))


def mounts(count: int) -> Iterator[tuple[str, Work]]:
    """Yield what is done with a mount table: of disks, bind mounts and those of containers."""
    pod = "/var/lib/kubelet/pods/{0}/volumes/kubernetes.io~csi/pvc-{0}/mount"
    slice_ = "/kubepods.slice/pod{0}/container{0}"
    for name, device, root, point in (
        ("mounts of a disk each", "8:{0}", "/", "/data/{0}"),
        ("bind mounts of one disk", "8:0", "/{0}", "/bind/{0}"),
        ("mounts of pods", "8:{0}", "/", pod),
        ("mounts of cgroups", "0:30", slice_, f"/sys/fs/cgroup{slice_}"),
    ):
        text, many = mountinfo(count, device, root, point), disks(count)
        yield name, lambda text=text, many=many: _mounted(text, many)  # type: ignore[misc]


def _mounted(text: str, many: tuple[Disk, ...]) -> None:
    table = parse_mountinfo(text)
    with_csi_volumes(with_stacking(many, table), table, lambda _: None)


def of_disks(count: int) -> Iterator[tuple[str, Work]]:
    """Yield what is done with disks that are all monitored and busy."""
    many = disks(count)
    found = entries(1, model="disk")
    configuration = Configuration(Settings(disks=found), CATALOG)
    new = match_disks(configuration, many)
    empty = initial_state(configuration)
    yield "disks matched", lambda: match_disks(configuration, many)
    yield "disks that are new to the sampler", lambda: configure(empty, new, clocks(0))
    state = configure(empty, new, clocks(0))
    yield "the same disks again", lambda: configure(state, new, clocks(0))
    for tick in range(12):
        state = advance(state, Tick(clocks(tick), diskstats(count, tick)))
    last = Tick(clocks(12), diskstats(count, 12))
    yield "disks in a tick in which all are busy", lambda: advance(state, last)
    yield "disks in a second of history", lambda: History().after(state)
    registry = make_registry(SnapshotCollector(lambda: take_snapshot(state)))
    names = tuple(f"disksla_{number}" for number in range(count))
    yield "names asked for by name[], of 10 disks", _of_names(names)
    yield "disks on a page of metrics", lambda: render_metrics(registry)
    yield "disks saved and restored", lambda: _restored(empty, state, new)
    yield "disks among which one is found by its path", lambda: find_disk("/data/7", many)


def _of_names(names: tuple[str, ...]) -> Work:
    few = disks(10)
    configuration = Configuration(Settings(), CATALOG)
    state = configure(initial_state(configuration), match_disks(configuration, few), clocks(0))
    registry = make_registry(SnapshotCollector(lambda: take_snapshot(state)))
    return lambda: render_metrics(registry, names=names)


def _restored(empty: State, state: State, new: Matched) -> None:
    saved = to_saved_state(state, "machine", "boot")
    assert saved is not None
    read = decode(encode(saved), "machine", clocks(13))
    again = initial_state(empty.configuration, PreviousRun(read, "boot"))
    configure(again, new, clocks(13))


_OPERATIONS = "".join(
    f"\t{name:>12}: 12 12 0 1200 12000 10 20 30 0\n"
    for name in ("NULL", "READ", "WRITE", "COMMIT", *(f"OPERATION_{n}" for n in range(66)))
)


def nfs_text(count: int) -> str:
    """Return the text of mountstats, as long as that of NFS v4.2."""
    return "".join(
        f"device fs1:/export{number} mounted on /nfs/{number} with fstype nfs4 statvers=1.1\n"
        "\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600\n"
        f"\tage:\t{number}\n\tbytes:\t0 0 0 0 8192 {number} 2 1\n"
        f"\txprt:\ttcp 0 0 2 0 22 {number} {number} 0 48650 0 31 320271 30578\n"
        f"\tper-op statistics\n{_OPERATIONS}\n"
        for number in range(count)
    )


def nfs(count: int) -> Iterator[tuple[str, Work]]:
    """Yield what is done with NFS mounts: all are found, and all are read."""
    line = "{0} 1 0:{0} / /nfs/{0} rw - nfs4 fs1:/export{0} rw\n"
    table = parse_mountinfo("".join(line.format(number) for number in range(count)))
    device_at = {point: disk.name for disk in nfs_disks(table) for point in disk.mount_points}
    text = nfs_text(count)
    yield "NFS mounts in a mount table", lambda: nfs_disks(table)
    yield "NFS mounts in a reading of mountstats", lambda: parse_mountstats(text, device_at)


KINDS = (terms, volumes, mounts, nfs, of_disks)


def cpu_s(work: Work) -> float:
    """Return the CPU time of the work, in seconds, without what others left to collect."""
    gc.collect()
    begin_s = time.thread_time()
    work()
    return time.thread_time() - begin_s


def measure_many() -> None:
    """Print the table."""
    print(f"| what | {MANY // PART} | {MANY} | ratio |\n|:--|--:|--:|--:|")
    for kind in KINDS:
        for (name, fewer), (_, more) in zip(kind(MANY // PART), kind(MANY), strict=True):
            part_s, whole_s = (min(cpu_s(work) for _ in range(2)) for work in (fewer, more))
            ratio = whole_s / max(part_s, 1e-6)
            print(f"| {name} | {part_s * 1000:.1f} ms | {whole_s * 1000:.1f} ms | {ratio:.1f} |")
