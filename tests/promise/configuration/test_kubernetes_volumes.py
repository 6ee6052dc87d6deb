"""Disks with their terms: PersistentVolumes in terms files, and what is new in a matching."""

from typing import Any

import pytest

from disksla.kernel.disks.csi_volume import handle_hash
from disksla.kernel.disks.disk import Disk
from disksla.promise.configuration.configuration import Configuration, TermsFile
from disksla.promise.configuration.found_terms import find_terms
from disksla.promise.configuration.match_index import matches
from disksla.promise.configuration.matched import (
    Matched,
    MatchEvent,
    changes,
    match_disks,
    with_kubernetes_volumes,
)
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.promise.terms_file import PersistentVolume
from disksla.state.pipeline.advance import configure
from disksla.state.pipeline.snapshot import Snapshot
from support.simulated_host import CATALOG, Machine, a_disk

HANDLE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/pvc-1"
AZURE = PersistentVolume(
    volume_handle=HANDLE,
    driver="disk.csi.azure.com",
    persistent_volume="pvc-1",
    claim="data-pg-0",
    namespace="db",
    storage_class="fast",
)
FILE = TermsFile("k", "metadata", "Kubernetes API", 0.0, volumes=(AZURE,))
CLAIM = ("data-pg-0", "db", "fast")


def claim_of(disk: Disk) -> tuple[str | None, str | None, str | None]:
    return disk.claim, disk.namespace, disk.storage_class


@pytest.mark.parametrize(
    "known",
    [
        {"volume_handle": HANDLE, "csi_driver": "disk.csi.azure.com"},
        {"volume_handle_hash": handle_hash(HANDLE), "csi_driver": "disk.csi.azure.com"},
        {"persistent_volume": "pvc-1"},
    ],
)
def test_volume_of_a_disk(known: dict[str, Any]) -> None:
    (disk,) = with_kubernetes_volumes([a_disk(**known)], (FILE,))
    assert claim_of(disk) == CLAIM
    assert (disk.csi_driver, disk.volume_handle) == ("disk.csi.azure.com", HANDLE)
    assert (disk.persistent_volume, disk.volume_handle_hash) == ("pvc-1", None)


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"volume_handle": "other", "persistent_volume": "pvc-1"},
        {"volume_handle_hash": handle_hash("other"), "persistent_volume": "pvc-1"},
        {"persistent_volume": "pvc-2"},
    ],
)
def test_other_disks_are_unchanged(known: dict[str, Any]) -> None:
    disk = a_disk(**known)
    assert with_kubernetes_volumes([disk], (FILE,)) == (disk,)
    assert with_kubernetes_volumes([disk], ()) == (disk,)


def test_first_file_counts() -> None:
    other = TermsFile(
        "l",
        "metadata",
        "l",
        0.0,
        volumes=(PersistentVolume(volume_handle=HANDLE, driver="d", storage_class="slow"),),
    )
    (disk,) = with_kubernetes_volumes([a_disk(volume_handle=HANDLE)], (FILE, other))
    assert disk.storage_class == "fast"
    (disk,) = with_kubernetes_volumes([a_disk(volume_handle=HANDLE)], (other, FILE))
    assert (disk.storage_class, disk.claim) == ("slow", None)


def test_volume_without_claim_keeps_the_name_that_is_known() -> None:
    file = TermsFile(
        "k", "file", "k", 0.0, volumes=(PersistentVolume(volume_handle="h", driver="d"),)
    )
    disk = a_disk(volume_handle_hash=handle_hash("h"), persistent_volume="pvc-9")
    (found,) = with_kubernetes_volumes([disk], (file,))
    assert (found.persistent_volume, found.volume_handle) == ("pvc-9", "h")
    assert claim_of(found) == (None, None, None)


def test_handle_gives_the_key_of_the_volume() -> None:
    """The NVMe disk of Google Cloud does not show its name without udev."""
    handle = "projects/p/zones/z/disks/pvc-7"
    volume = PersistentVolume(volume_handle=handle, driver="pd.csi.storage.gke.io")
    file = TermsFile("k", "metadata", "k", 0.0, volumes=(volume,))
    disk = a_disk("nvme0n2", volume_handle_hash=handle_hash(handle), provider="gcp")
    (found,) = with_kubernetes_volumes([disk], (file,))
    assert (found.provider, found.volume, found.is_local) == ("gcp", "pvc-7", False)


@pytest.mark.parametrize(
    ("match", "disk", "expected"),
    [
        (DiskMatch(volume_handle=HANDLE), a_disk(volume_handle=HANDLE), True),
        (DiskMatch(volume_handle=HANDLE), a_disk(volume_handle_hash=handle_hash(HANDLE)), True),
        (DiskMatch(volume_handle=HANDLE), a_disk(volume_handle_hash=handle_hash("h")), False),
        (DiskMatch(volume_handle=HANDLE), a_disk(volume_handle=HANDLE[:20]), False),
        (DiskMatch(volume_handle=HANDLE), a_disk(), False),
        (DiskMatch(storage_class="fast"), a_disk(storage_class="fast"), True),
        (DiskMatch(storage_class="fast"), a_disk(storage_class="slow"), False),
        (DiskMatch(storage_class="fast"), a_disk(), False),
        (DiskMatch(storage_class="fast"), a_disk(storage_class="fast", slaves=("x",)), False),
    ],
)
def test_match(match: DiskMatch, disk: Disk, *, expected: bool) -> None:
    assert matches(match, disk) is expected


def test_class_of_a_volume_gives_its_terms() -> None:
    """Entries of people match by storage class as soon as a file says which disk has it."""
    entry = DiskEntry(match=DiskMatch(storage_class="fast"), terms="azure.premium-ssd")
    settings = Settings(disks=(entry,))
    disk = a_disk(volume_handle_hash=handle_hash(HANDLE), csi_driver="disk.csi.azure.com")
    machine = Machine(disk, settings=settings)
    assert find_terms(disk, settings, ()) is None
    (before,) = Snapshot(machine.state).disks
    assert before.assignment.source == "none"
    for files, terms, claim in (
        ((FILE,), "azure.premium-ssd", "data-pg-0"),
        ((), "unknown", None),
    ):
        configuration = Configuration(settings, CATALOG, terms_files=files)
        matched = match_disks(configuration, machine.state.inventory)
        machine.state = configure(machine.state, matched, machine.state.clocks)
        (after,) = Snapshot(machine.state).disks
        assert (after.assignment.terms, after.disk.claim) == (terms, claim)


def entry(terms: str = "vk.ceph-ssd", **match: str) -> DiskEntry:
    """Return an entry with these keys of `match`."""
    return DiskEntry(match=DiskMatch(**match), terms=terms)


def configuration(*entries: DiskEntry, problem: str | None = None) -> Configuration:
    """Return a configuration with these entries."""
    return Configuration(Settings(disks=entries), CATALOG, machine_problem=problem)


DISKS = (a_disk("vda"), a_disk("vdb", minor=16))
NOTHING = Matched(configuration())


def test_nothing_is_said_before_the_disks_are_known() -> None:
    matched = match_disks(configuration(entry(device="vdz"), problem="unknown machine"), ())
    assert matched.unused == ()
    assert changes(NOTHING, matched) == []


def test_each_kind_is_one_event() -> None:
    entries = [entry(serial=f"s{number}") for number in range(7)]
    matched = match_disks(configuration(*entries, entry("no.such", device="vda")), DISKS)
    unused, without, disks = changes(NOTHING, matched)
    assert (unused.message, unused.values["entries"]) == ("entries apply to no disk", 7)
    assert str(unused.values["err"]).endswith("(serial s4) matches no disk; and 2 more")
    assert (without.message, without.values["disks"]) == ("terms have no limits", 1)
    assert str(without.values["err"]).startswith("vda: disks[7] of the configuration matches")
    assert disks == MatchEvent(
        "disks monitored", {"disks": 2, "unknown_type": 1}, is_problem=False
    )


def test_what_is_known_is_not_said_again() -> None:
    first = match_disks(configuration(entry(serial="gone"), problem="unknown machine"), DISKS)
    again = match_disks(configuration(entry(serial="gone"), problem="unknown machine"), DISKS)
    assert [each.message for each in changes(NOTHING, first)] == [
        "entries apply to no disk",
        "disks monitored",
        "limits of the machine are not known",
    ]
    assert changes(first, again) == []


def test_work_does_not_grow_with_the_product_of_entries_and_disks() -> None:
    """100 million comparisons would take minutes, beyond the time limit of tests."""
    disks = tuple(a_disk(f"vd{number}", number, serial=f"s{number}") for number in range(5_000))
    entries = [entry(serial=f"gone-{number}") for number in range(20_000)]
    matched = match_disks(configuration(*entries, *(entry(device="vd7"),)), disks)
    assert len(matched.unused) == len(entries)
    assert [each.terms for each in matched.assignments.monitored.values()].count(
        "unknown"
    ) == 4_999
