"""Tests of entries that apply to no disk."""

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from disksla.promise.configuration.configuration import TermsFile
from disksla.promise.configuration.found_terms import (
    UnusedEntry,
    find_terms,
    shadowed_entries,
    unused_entries,
)
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from support.simulated_host import a_disk

DISKS = (a_disk("vda", serial="s"), a_disk("vdb"))


def entry(**match: str) -> DiskEntry:
    """Return an entry with these keys of `match`."""
    return DiskEntry(match=DiskMatch(**match), terms="vk.ceph-ssd")


def file_with(source: Literal["file", "api", "metadata"], *entries: DiskEntry) -> TermsFile:
    """Return a file of a source with entries."""
    return TermsFile("f", source, "f", 0.0, disks=entries)


def test_entry_without_a_disk_is_unmatched() -> None:
    settings = Settings(disks=(entry(device="vda"), entry(serial="other")))
    (unused,) = unused_entries(DISKS, settings, ())
    expected = "disks[1] of the configuration (serial other) matches no disk"
    assert unused.describe() == expected


def test_path_below_a_mount_point_is_named() -> None:
    disks = (
        a_disk("vda", mount_points=("/",)),
        a_disk("vdb", minor=16, mount_points=("/", "/pg")),
        a_disk("vdb1", minor=17, partition_of="vdb", mount_points=("/pg/16",)),
    )
    settings = Settings(disks=(entry(mountpoint="/pg/16/main"), entry(mountpoint="/pg")))
    (unused,) = unused_entries(disks, settings, ())
    assert unused.describe() == (
        "disks[0] of the configuration (mountpoint /pg/16/main) matches no disk; /pg/16/main is"
        " not a mount point, and is on /pg (vdb) if it is not mounted later"
    )
    (unused, _) = unused_entries(disks[2:], settings, ())
    assert unused.hint == ""


def test_entry_after_another_for_the_same_disk_is_shadowed() -> None:
    settings = Settings(disks=(entry(device="vda"), entry(serial="s")))
    files = (file_with("file", entry(device="vda")),)
    assert unused_entries(DISKS, settings, files) == (
        UnusedEntry("configuration", "disks[1] of the configuration", "shadowed", "serial s"),
        UnusedEntry("file", "disks[0] of f", "shadowed", "device vda"),
    )


def test_provider_may_repeat_what_people_say() -> None:
    settings = Settings(disks=(entry(device="vda"),))
    files = (
        file_with("api", entry(serial="s"), entry(serial="gone")),
        file_with("metadata", entry(serial="s")),
    )
    assert unused_entries(DISKS, settings, files) == (
        UnusedEntry("api", "disks[1] of f", "unmatched", "serial gone"),
    )


def test_file_storage_that_is_not_monitored_has_an_entry_all_the_same() -> None:
    mounted = entry(mountpoint="/srv/share")
    files = (file_with("api", mounted), file_with("metadata", mounted))
    assert unused_entries(DISKS, Settings(), files) == ()
    (of_people,) = unused_entries(DISKS, Settings(), (file_with("file", mounted),))
    assert of_people.reason == "unmatched"


def test_entry_that_can_apply_to_no_disk_is_shadowed() -> None:
    settings = Settings(
        disks=(
            entry(model="m"),
            entry(device="vda", model="m"),
            entry(device="vda"),
            entry(device="vda"),
            entry(device="vdb"),
        )
    )
    assert shadowed_entries(settings) == {1: 0, 3: 2}


MATCHES = st.sampled_from([{"device": "vda"}, {"device": "vdb"}, {"serial": "s"}, {"device": "x"}])


@given(configured=st.lists(MATCHES, max_size=4), in_file=st.lists(MATCHES, max_size=4))
def test_an_entry_is_unused_if_and_only_if_no_disk_has_it(
    configured: list[dict[str, str]], in_file: list[dict[str, str]]
) -> None:
    settings = Settings(disks=tuple(entry(**match) for match in configured))
    files = (file_with("file", *(entry(**match) for match in in_file)),)
    found = [find_terms(disk, settings, files) for disk in DISKS]
    used = {id(each.entry) for each in found if each is not None}
    every = [*settings.disks, *files[0].disks]
    unused = unused_entries(DISKS, settings, files)
    assert len(unused) == sum(id(each) not in used for each in every)
