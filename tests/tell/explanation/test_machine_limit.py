"""The limit of the machine over a disk, and texts on it that no other test prints."""

from disksla.commands._recent import FollowedStates, from_recording
from disksla.promise.catalogue import NO_LIMITS, Limits
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.machine import (
    MachineChoice,
    MachineRules,
    find_machine,
    machine_groups,
    machine_of_vcpus,
)
from disksla.promise.catalogue.machine_tables import load_machine_rules, read_table
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.promise.configuration.settings import DiskEntry, MachineSettings, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.history import History
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State
from disksla.tell.explanation.machine_limit import limits_over, machine_limit
from disksla.tell.explanation.past import HistoryView, most_throttled
from disksla.tell.explanation.sentences import LargerMachine, explain
from disksla.tell.explanation.summary import Summary, SummaryPart
from disksla.tell.machine_text import DiskOnMachine, compare, machine_note
from support.simulated_host import Machine, a_disk, reconfigured

LIMIT = 2000
CALM = ("Nothing was wrong", "No limit held")
PART = SummaryPart(6.0, 977.0, 977 * 131072.0, 16.0, 0.0164)
DISKS = (a_disk("vda"), a_disk("vdb", 16))
ENTRIES = tuple(
    DiskEntry(match=DiskMatch(device=name), terms="gcp.pd-balanced") for name in ("vda", "vdb")
)


def test_limits_of_a_type_are_not_those_of_the_machine() -> None:
    """Two Persistent Disks share the limits of their total size, and no machine is configured."""
    machine = Machine(*DISKS, settings=Settings(disks=ENTRIES))
    assert list(machine.state.groups) == ["gcp.pd-balanced"]
    assert machine_limit(machine.state, "vda") is None


def test_limits_that_are_written_out_have_no_larger_machine() -> None:
    limits = MachineSettings(limits=SumTerms(iops=900.0))
    machine = Machine(*DISKS, settings=Settings(disks=ENTRIES, machine=limits))
    found = machine_limit(machine.state, "vda")
    assert found is not None
    assert (found.shared.limits.rates.read_iops, found.larger) == (900.0, {})


def test_larger_machines_are_looked_up_once_for_all_disks_and_pages() -> None:
    rules = load_machine_rules("aws")
    assert rules is not None
    entries = tuple(
        DiskEntry(match=DiskMatch(device=name), terms="aws.gp3") for name in ("vda", "vdb")
    )
    machine = Machine(*DISKS, settings=Settings(disks=entries))

    def with_type(name: str) -> None:
        choice = MachineChoice(rules, find_machine(rules, read_table(rules), name))
        machine.state = reconfigured(machine.state, machine.state.settings, (choice,))

    with_type("m6i.large")
    first, second = (machine_limit(machine.state, name) for name in ("vda", "vdb"))
    assert first is not None
    assert second is not None
    assert first.larger["iops"] == LargerMachine("m6i.xlarge", 6000.0)
    assert second.larger is first.larger
    with_type("m6i.xlarge")
    other = machine_limit(machine.state, "vda")
    assert other is not None
    assert other.larger["iops"].name == "m6i.2xlarge"


def cached_on(machine_type: str) -> Machine:
    """Return a machine of Azure with a disk whose reads its host caches."""
    rules = load_machine_rules("azure")
    assert rules is not None
    entry = DiskEntry(
        match=DiskMatch(device="vda"), terms="azure.premium-ssd", size="2TiB", caching="read-only"
    )
    machine = Machine(a_disk("vda"), settings=Settings(disks=(entry,)))
    choice = MachineChoice(rules, find_machine(rules, read_table(rules), machine_type))
    machine.state = reconfigured(machine.state, machine.state.settings, (choice,))
    return machine


def test_of_several_limits_of_the_machine_the_one_that_throttled_is_named() -> None:
    """A D8s_v3 allows 128 MB/s with the cache of the host, and 192 MB/s without."""
    state = cached_on("Standard_D8s_v3").state
    assert [each.name for each in limits_over(state, "vda")] == ["uncached", "cached"]
    assert most_throttled({"uncached": 0.0, "cached": 9.5}) == ("cached", 9.5)
    assert most_throttled({"uncached": 0.0}) == (None, 0.0)
    found = machine_limit(state, "vda", "cached")
    assert found is not None
    summary = Summary(10.0, {"throttled": PART}, {("base", "machine_bandwidth"): PART}, 1.0)
    [sentence] = explain(summary, state.monitored["vda"].assignment, found)
    assert sentence.endswith(
        "the disk served 977 IOPS, 122.1 MiB/s; Standard_D8s_v3 allows the cache of the host and"
        " the temporary disk together 122.1 MiB/s (128 MB/s). A larger or faster disk would not"
        " help. Caching None would, up to 183.1 MiB/s of the machine; Standard_D16s_v3 would"
        " (244.1 MiB/s)."
    )
    other = machine_limit(state, "vda")
    assert other is not None
    assert "Caching" not in explain(summary, state.monitored["vda"].assignment, other)[0]


def test_caching_none_is_no_relief_where_it_allows_less() -> None:
    """A D8s_v3 allows 16,000 IOPS with the cache of the host, and 12,800 without."""
    state = cached_on("Standard_D8s_v3").state
    found = machine_limit(state, "vda", "cached")
    summary = Summary(10.0, {"throttled": PART}, {("base", "machine_iops"): PART}, 1.0)
    [sentence] = explain(summary, state.monitored["vda"].assignment, found)
    assert "Caching" not in sentence


def reads(machine: Machine, busy: int, quiet: int, quiet_ms: int) -> None:
    """Read from vda, with a queue if the machine is at its limit, and from vdb, for a window."""
    waits = busy >= LIMIT / 10 - quiet
    machine.does("vda", reads=busy, read_sectors=8 * busy, read_ms=3200 * waits)
    machine.does("vda", inflight=32 * waits)
    machine.does("vdb", reads=quiet, read_sectors=8 * quiet, read_ms=quiet * quiet_ms)
    machine.tick()


def beside_a_busy_disk(iops: int) -> list[State]:
    """Return the states of ten seconds in which two disks have this rate together."""
    own = DiskMatch(device="vda"), DiskMatch(device="vdb")
    entries = tuple(DiskEntry(match=match, terms=SumTerms(iops=9000.0)) for match in own)
    limits = MachineSettings(limits=SumTerms(iops=float(LIMIT)))
    machine = Machine(*DISKS, settings=Settings(disks=entries, machine=limits))
    states = [machine.state]
    for _ in range(100):
        reads(machine, iops // 10 - 3, 3, 6)
        states.append(machine.state)
    return states


def test_disk_below_its_limit_may_have_waited_for_the_machine() -> None:
    """Its own limit is far, and that of the machine is reached."""
    states = beside_a_busy_disk(LIMIT)
    for explained in (explained_of(states), from_recording_of(states)):
        assert not any(each.startswith(CALM) for each in explained["vdb"])


def test_disk_below_its_limit_beside_no_busy_disk_was_not_throttled() -> None:
    states = beside_a_busy_disk(LIMIT // 4)
    for explained in (explained_of(states), from_recording_of(states)):
        assert any(each.startswith(CALM) for each in explained["vdb"])


def explained_of(states: list[State]) -> dict[str, list[str]]:
    """Return the sentences on each disk, and check that those on an hour exclude nothing."""
    history = History()
    for state in states:
        history = history.after(state)
    past = HistoryView(history, lambda *named: machine_limit(states[-1], *named))
    found = {}
    for snapshot in Snapshot(states[-1]).disks:
        found[snapshot.disk.name] = past.explain(snapshot, past.seconds(snapshot))
        hour = past.explain(snapshot, past.minutes(snapshot))
        assert not any(each.startswith(CALM) for each in hour)
    return found


def from_recording_of(states: list[State]) -> dict[str, list[str]]:
    return {
        name: list(disk.sentences)
        for name, disk in from_recording(FollowedStates(states)).disks.items()
    }


def test_machine_that_throttled_no_disk() -> None:
    history = History()
    for state in beside_a_busy_disk(LIMIT // 4):
        history = history.after(state)
    assert history.machine["custom"].devices == ("vda", "vdb")
    assert history.machine_s("vda", 0.0) == {"custom": 0.0}


CATALOG = load_catalog()


def rules_of(provider: str) -> MachineRules:
    rules = load_machine_rules(provider)
    assert rules is not None
    return rules


def test_type_without_a_machine_limit_has_no_text() -> None:
    assert machine_note(rules_of("gcp"), CATALOG["gcp.hyperdisk-balanced"]) is None
    assert machine_note(rules_of("azure"), CATALOG["azure.ultra"]) is not None


def test_comparison_with_a_disk_without_limits() -> None:
    rules = rules_of("yandex")
    machine = machine_of_vcpus(1)
    groups = machine_groups(rules, machine)
    assert machine.shown == "A machine with 1 vCPU"

    def sentence(limits: Limits) -> str:
        disk = DiskOnMachine(CATALOG["yandex.network-ssd"], limits, machine, rules, groups)
        return compare(disk, disk.covering[0])

    assert "3500 IOPS, for which this disk has no limit, and 45 MiB/s" in sentence(NO_LIMITS)
