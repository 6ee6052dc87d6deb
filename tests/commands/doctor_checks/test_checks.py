"""What each check says of a machine on which one fact is another than on a healthy one."""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
from prometheus_client.core import Sample

from disksla.base.units import GIB, MIB
from disksla.commands.doctor_checks.facts import (
    AccessFacts,
    ClockFacts,
    ConfigurationFacts,
    MachineFacts,
    StateFacts,
    UnitFacts,
    WebFacts,
)
from disksla.kernel.disks.disk import Disk
from support.machine_facts import (
    DAEMON,
    DISK,
    HEALTHY,
    NOW_S,
    SAMPLES,
    SETTINGS,
    configured,
    machine,
    results,
    sample,
    terms_file,
    with_disk,
)

Cases = Mapping[str, tuple[str, MachineFacts]]
"""A check, or a group of them, and the facts."""

API = """
source: api
origin: EC2 API
as_of: 2027-01-15T07:50:00Z
max_age: 2h
provider: aws
machine: {type: m6i.large}
disks: [{match: {volume: vol-0a1b}, api_type: gp3, size: 500GiB, iops: 4000}]
"""
PEOPLE = API.replace("source: api\norigin: EC2 API\n", "")
LATER_S = NOW_S + 7200
TYPE = "machine: {type: m6i.large}"
WRITTEN = "machine: {limits: {budget: sum, iops: 3000}}"
WITHOUT_ANOTHER = "discovery: {exclude: ['^nvme2']}\n"


def other(name: str = "nvme2n1", **fields: object) -> Disk:
    return Disk(name, 259, 9, **{"size_bytes": GIB, **fields})  # type: ignore[arg-type]


def settings(text: str, **facts: object) -> MachineFacts:
    return machine(configuration=configured(text), **facts)


def entry(sold_as: str, **facts: object) -> MachineFacts:
    """Return the machine with an entry for its disk."""
    return settings(f"disks: [{{match: {{device: nvme1n1}}, {sold_as}}}]", **facts)


def detected(text: str = API, configuration: str = "", **facts: object) -> MachineFacts:
    """Return the machine with a terms file of the provider."""
    return machine(configuration=configured(configuration, terms_file(text)), **facts)


def volume(sold_as: str) -> MachineFacts:
    return detected(f"provider: aws\ndisks: [{{match: {{volume: vol-0a1b}}, {sold_as}}}]")


LOCAL = msgspec.structs.replace(DISK, serial="AWS1", volume=None, is_local=True)
LARGER = msgspec.structs.replace(DISK, size_bytes=600 * GIB)
NOT_COUNTED = {"nvme1n1": "0"}
INVALID = ConfigurationFacts("x", None, "x:1: bad")
TWO = (DISK, other())
DISKS: Cases = {
    "terms of people": ("disks.terms", machine()),
    "terms of the provider": ("disks.terms", detected()),
    "too old": ("disks.age", detected(now_s=LATER_S)),
    "too old, and in force": ("disks.terms", detected(now_s=LATER_S)),
    "too old, of people": ("disks.age", detected(PEOPLE, now_s=LATER_S)),
    "no terms": ("disks.terms", settings("")),
    "unknown type": ("disks.terms", volume("api_type: gp9")),
    "values that the type does not have": ("disks.terms", volume("api_type: gp2, iops: 9000")),
    "local disk": ("disks.terms", settings("", disks=(LOCAL,))),
    "type without limits": ("disks.terms", entry("terms: generic.ssd")),
    "invalid configuration": ("disks.", machine(configuration=INVALID, iostats=NOT_COUNTED)),
    "not counted": ("disks.iostats", machine(iostats=NOT_COUNTED)),
    "not counted, not monitored": (
        "disks.iostats",
        machine(disks=(DISK, other("loop0")), iostats={"loop0": "0"}),
    ),
    "size": ("disks.size", with_disk(size_bytes=500 * GIB)),
    "about the size": ("disks.size", with_disk(size_bytes=499 * GIB)),
    "smaller than sold": ("disks.size", with_disk(size_bytes=465 * GIB)),
    "larger than sold": ("disks.size", with_disk(size_bytes=537 * GIB)),
    "smaller SCSI disk": ("disks.size", with_disk(name="sdb", size_bytes=100 * GIB)),
    "smaller virtual disk": ("disks.size", with_disk(name="vdb", size_bytes=100 * GIB)),
    "larger than the provider said": ("disks.size", detected(disks=(LARGER,))),
    "size may be a total": ("disks.size", entry("terms: gcp.pd-balanced, size: 2TiB")),
    "size of its own": ("disks.size", entry("terms: {budget: sum, iops: 300}, size: 2TiB")),
    "no size": ("disks.size", entry("terms: aws.gp3")),
    "all excluded": ("disks.monitored", settings("discovery: {exclude: ['.']}")),
    "none included": ("disks.monitored", settings("discovery: {include: ['^x']}")),
    "no disk": ("disks.monitored", settings("", disks=(other("loop0"),))),
    "unused entry while a disk has no terms": (
        "disks.entries",
        settings("disks: [{match: {serial: typo}, terms: aws.gp3}]"),
    ),
    "unused entry": (
        "disks.entries",
        settings(SETTINGS.replace("[", "[{match: {serial: other}, terms: aws.gp2}, ", 1)),
    ),
    "shadowed entry": (
        "disks.entries",
        settings(SETTINGS.replace("}]", "}, {match: {device: nvme1n1}, terms: aws.gp2}]")),
    ),
    "volume that is not here": (
        "disks.entries",
        detected(API.replace("vol-0a1b", "vol-9"), SETTINGS),
    ),
    "machine": ("disks.machine", machine()),
    "unknown machine": ("disks.machine", settings(SETTINGS.replace(TYPE, ""))),
    "new machine": ("disks.machine", detected(API.replace("m6i.large", "m99.huge"))),
    "provider without tables": ("disks.machine", entry("terms: hetzner.volume")),
    "limits of the machine written out": ("disks.machine", settings(WRITTEN)),
    "counted for the machine": (
        "disks.machine",
        settings(SETTINGS.replace(TYPE, WRITTEN) + WITHOUT_ANOTHER, disks=TWO),
    ),
    "excluded for the machine": (
        "disks.machine",
        settings(
            SETTINGS.replace("large}", "large, exclude: ['^nvme2']}") + WITHOUT_ANOTHER, disks=TWO
        ),
    ),
    "not monitored": (
        "disks.machine",
        settings(
            SETTINGS + "discovery: {exclude: ['^nvme2', '^nvme3']}\n",
            disks=(*TWO, other("nvme2n1p1", partition_of="nvme2n1"), other("loop0")),
        ),
    ),
}


def daemon(*changed: Sample, **facts: object) -> MachineFacts:
    """Return the healthy machine with other answers; samples of the same metric are replaced."""
    names = {each.name for each in changed}
    samples = tuple(each for each in SAMPLES if each.name not in names) + changed
    return machine(daemon=msgspec.structs.replace(DAEMON, **{"samples": samples, **facts}))


def without_unit(facts: MachineFacts) -> MachineFacts:
    return msgspec.structs.replace(facts, unit=None)


def changed_at(timestamp_s: float, now_s: float = NOW_S) -> MachineFacts:
    changed = msgspec.structs.replace(HEALTHY.configuration, modified_timestamp_s=timestamp_s)
    return machine(configuration=changed, now_s=now_s)


NO_DAEMON = daemon(problem="Connection refused")
NOT_READY = "not ready: the disks have not been sampled yet"
NOT_RELOADED = daemon(sample("config_last_reload_successful", 0.0))
NO_FILE = ConfigurationFacts(None, HEALTHY.configuration.configuration)
ONLY_VERSION = sample("build_info", version="1.0")
OF_STATE = sample("collector_success", 0.0, collector="state")
SAMPLER = sample("errors_total", 2.0, source="sampler")
AS_STARTED = (
    sample("disk_info", device="nvme1n1", terms="aws.io2"),
    sample("disk_info", device="loop0", terms="custom"),
)
DAEMONS: Cases = {
    "no answer": ("daemon.", NO_DAEMON),
    "no answer, no unit": ("daemon.", without_unit(NO_DAEMON)),
    **{
        f"status {status}": ("daemon.", daemon(samples=(), metrics_status=status))
        for status in (400, 401, 404, 429, 503, 500)
    },
    "not seen": ("daemon.", daemon(samples=(), unseen="it requires a certificate")),
    "another program": ("daemon.", daemon(samples=())),
    "not ready": ("daemon.running", daemon(ready_status=503, ready_text=NOT_READY)),
    "not ready, and not scraped": ("daemon.scraped", daemon(ready_status=503)),
    "not ready, without a reason": ("daemon.running", daemon(ready_status=503, ready_text="")),
    "another version": ("daemon.version", daemon(sample("build_info", version="0.9"))),
    "reload failed": ("daemon.configuration", NOT_RELOADED),
    "reload failed, no file": (
        "daemon.configuration",
        msgspec.structs.replace(NOT_RELOADED, configuration=NO_FILE),
    ),
    "changed since": ("daemon.configuration", changed_at(NOW_S + 60, NOW_S + 120)),
    "changed before": ("daemon.configuration", changed_at(NOW_S - 60)),
    "nothing of reloads": ("daemon.configuration", daemon(samples=(ONLY_VERSION,))),
    "parts": (
        "daemon.parts",
        daemon(OF_STATE, sample("collector_success", 1.0, collector="disks")),
    ),
    "errors": (
        "daemon.errors",
        daemon(
            OF_STATE,
            sample("errors_total", 3.0, source="state"),
            sample("errors_total", 1.0, source="systemd"),
            sample("errors_total", 2.0, source="terms"),
        ),
    ),
    "failed ticks": ("daemon.errors", daemon(SAMPLER)),
    "failing ticks": (
        "daemon.parts",
        daemon(SAMPLER, sample("collector_success", 0.0, collector="sampler")),
    ),
    "no failed ticks": ("daemon.errors", daemon(sample("errors_total", 0.0, source="sampler"))),
    **{
        f"missed ticks: {missed:g} of 99": (
            "daemon.ticks",
            daemon(
                sample("sampler_ticks_total", 99.0), sample("sampler_missed_ticks_total", missed)
            ),
        )
        for missed in (0.0, 1.0, 2.0)
    },
    "nothing of ticks": (
        "daemon.ticks",
        daemon(samples=(ONLY_VERSION, sample("sampler_ticks_total"))),
    ),
    **{
        scrape: ("daemon.scraped", daemon(ready_text=f"ready\n{scrape}"))
        for scrape in ("last scrape 0 s ago", "last scrape 300 s ago", "last scrape 301 s ago")
    },
    **{
        f"never scraped at {url}": (
            "daemon.scraped",
            daemon(url=url, ready_text="ready\nnever scraped"),
        )
        for url in ("http://[::1]:99/metrics", "http://localhost/metrics", "unix:///run/d.sock")
    },
    "disks as by the files here": ("disks.monitored", daemon(AS_STARTED[0])),
    "other disks than by the files here": ("disks.monitored", daemon(*AS_STARTED)),
    "other terms than by the files here": ("disks.terms", daemon(*AS_STARTED)),
    "clock": ("clock.", machine(clock=ClockFacts(is_synchronised=True))),
    "clock with an error": (
        "clock.",
        machine(clock=ClockFacts(is_synchronised=True, error_s=math.pi)),
    ),
    "clock that is not synchronised": (
        "clock.",
        machine(clock=ClockFacts(is_synchronised=False, error_s=16.0)),
    ),
    "clock of which nothing is known": (
        "clock.",
        machine(clock=ClockFacts(is_synchronised=None, problem="adjtimex failed")),
    ),
}

CONFIGURATION = HEALTHY.configuration.configuration
STATE = "/var/lib/disksla"


def of_file(*fields: object, is_root: bool = True, **more: object) -> MachineFacts:
    facts = ConfigurationFacts(*fields, **more)  # type: ignore[arg-type]
    return machine(configuration=facts, is_root=is_root)


def of_web(problem: str | None, summary: str = "") -> MachineFacts:
    return of_file("x", CONFIGURATION, web=WebFacts("w.yml", problem, summary))


def of_state(*state: object, access: AccessFacts | None = None, **more: object) -> MachineFacts:
    facts = StateFacts(STATE, *state, **more)  # type: ignore[arg-type]
    return machine(state=facts, access=access or AccessFacts("disksla"))


NOT_READABLE = "cannot read /etc/x.yml: Permission denied"
ONLY_ROOT = machine(access=AccessFacts("disksla", "only root can check"))
NO_USER = AccessFacts("disksla", "found no user disksla", has_user=False)
DENIED = AccessFacts("disksla", None, ("/etc/x", "/etc/y"))
FILES: Cases = {
    "valid": ("configuration.file", machine()),
    "no file": ("configuration.file", of_file(None, CONFIGURATION)),
    "two problems": (
        "configuration.file",
        of_file("/e/x.yml", None, "/e/x.yml:1: a\n/e/x.yml:2: b"),
    ),
    "a problem of catalog.d": (
        "configuration.file",
        of_file(None, None, "/e/catalog.d/x.yml:1: a"),
    ),
    "not readable by root": ("configuration.file", of_file("/etc/x.yml", None, NOT_READABLE)),
    "not readable": (
        "configuration.file",
        of_file("/etc/x.yml", None, NOT_READABLE, is_root=False),
    ),
    "a note, and a type of its own": (
        "configuration.",
        of_file("x", CONFIGURATION, notes=("disks[0]: beyond",), own_rows=1),
    ),
    "two types": ("configuration.catalog", of_file("x", CONFIGURATION, own_rows=2)),
    "terms files": (
        "configuration.terms",
        of_file("x", CONFIGURATION, terms_problems=("a.yml:1: x\na.yml:2: y", "z")),
    ),
    "web": ("configuration.web", of_web(None, "TLS")),
    "invalid web": ("configuration.web", of_web("w.yml:1: a\nw.yml:2: b")),
    "access is not known": ("configuration.access", ONLY_ROOT),
    "access is not known, state": ("state.directory", ONLY_ROOT),
    "no user": ("configuration.access", machine(access=NO_USER)),
    "denied": ("configuration.access", machine(access=DENIED)),
    "state": ("state.", of_state(None, 2**40)),
    "no directory": ("state.directory", of_state("it does not exist")),
    "read only": ("state.directory", of_state(None, 2**40, is_read_only=True)),
    "not writable": (
        "state.directory",
        of_state(None, 2**40, access=AccessFacts("disksla", may_write_state=False)),
    ),
    "31 MiB": ("state.space", of_state(None, 31 * MIB)),
    "32 MiB": ("state.space", of_state(None, 32 * MIB)),
}

DENIED_API = API + "problems: [{source: api, reason: denied, message: it failed}]\n"
NOT_ASKED = {"configuration": configured("")}
OPENSTACK = {"provider": "openstack", "detect_unit": None, **NOT_ASKED}


def passing_on(*credentials: str) -> MachineFacts:
    unit = UnitFacts("unit", {"LoadCredential": credentials})
    return machine(**OPENSTACK | {"detect_unit": unit, "has_credentials_file": True})


PROVIDERS: Cases = {
    "machine": ("provider.machine", machine()),
    "no machine, with terms": ("provider.machine", machine(provider=None)),
    "no machine, no terms": ("provider.machine", machine(provider=None, **NOT_ASKED)),
    "terms of people": ("provider.detect", machine()),
    "not asked": ("provider.detect", machine(**NOT_ASKED)),
    "not asked, no unit": ("provider.detect", machine(**NOT_ASKED, detect_unit=None)),
    "not asked, cannot be": ("provider.detect", machine(**NOT_ASKED, provider="alibaba")),
    "asked": ("provider.detect", detected()),
    "denied": ("provider.detect", detected(DENIED_API)),
    "file of people": (
        "provider.detect",
        machine(configuration=configured(SETTINGS, terms_file("disks: []", "/e/terms.d/p.yml"))),
    ),
    "OpenStack": ("provider.credentials", machine(**OPENSTACK)),
    "OpenStack with a file": (
        "provider.credentials",
        machine(**OPENSTACK, has_credentials_file=True),
    ),
    "VK Cloud": ("provider.credentials", machine(**OPENSTACK | {"provider": "vk"})),
    "AWS": ("provider.credentials", machine(**OPENSTACK | {"provider": "aws"})),
    "not passed on": ("provider.credentials", passing_on()),
    "another is passed on": ("provider.credentials", passing_on("x:/x")),
    "passed on": ("provider.credentials", passing_on("clouds.yaml:/etc/disksla/clouds.yaml")),
    "timer": ("provider.timer", machine()),
    "no timer": ("provider.timer", machine(has_detect_timer=False)),
    "no timer, no unit": ("provider.timer", machine(detect_unit=None)),
    "no timer needed": ("provider.timer", machine(provider="alibaba")),
}


def shown(cases: Cases) -> Iterator[str]:
    """Yield what the checks say, case after case."""
    for name, (check, facts) in cases.items():
        yield f"# {name}"
        found = results(facts, check)
        if not found:
            yield f"nothing of {check}"
        for each in found:
            subject = f" {each.subject}" if each.subject else ""
            yield f"{each.status} {each.check}{subject}: {each.found}"
            yield from (f"    {more}" for more in (each.expected, each.fix) if more)


@pytest.mark.parametrize(
    ("name", "cases"),
    {"disks": DISKS, "daemon": DAEMONS, "files": FILES, "provider": PROVIDERS}.items(),
)
def test_checks(name: str, cases: Cases, golden: Callable[[Path, str], None]) -> None:
    golden(Path(__file__).parent / "cases" / f"{name}.txt", "\n".join([*shown(cases), ""]))
