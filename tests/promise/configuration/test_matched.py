"""The disks of a machine with their terms, as a ready value, and what is new in it."""

from disksla.promise.configuration.configuration import Configuration
from disksla.promise.configuration.matched import Matched, MatchEvent, changes, match_disks
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from support.simulated_host import CATALOG, a_disk


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
