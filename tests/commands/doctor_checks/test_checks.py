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

Cases = Mapping[str, MachineFacts]
"""By a check, or a group of them, and what is not as usual: the facts."""

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
    "disks.terms terms of people": machine(),
    "disks.terms terms of the provider": detected(),
    "disks.age too old": detected(now_s=LATER_S),
    "disks.terms too old, and in force": detected(now_s=LATER_S),
    "disks.age too old, of people": detected(PEOPLE, now_s=LATER_S),
    "disks.terms no terms": settings(""),
    "disks.terms unknown type": volume("api_type: gp9"),
    "disks.terms values that the type does not have": volume("api_type: gp2, iops: 9000"),
    "disks.terms local disk": settings("", disks=(LOCAL,)),
    "disks.terms type without limits": entry("terms: generic.ssd"),
    "disks. invalid configuration": machine(configuration=INVALID, iostats=NOT_COUNTED),
    "disks.iostats not counted": machine(iostats=NOT_COUNTED),
    "disks.iostats not counted, not monitored": machine(
        disks=(DISK, other("loop0")), iostats={"loop0": "0"}
    ),
    "disks.size size": with_disk(size_bytes=500 * GIB),
    "disks.size about the size": with_disk(size_bytes=499 * GIB),
    "disks.size smaller than sold": with_disk(size_bytes=465 * GIB),
    "disks.size larger than sold": with_disk(size_bytes=537 * GIB),
    "disks.size smaller SCSI disk": with_disk(name="sdb", size_bytes=100 * GIB),
    "disks.size smaller virtual disk": with_disk(name="vdb", size_bytes=100 * GIB),
    "disks.size larger than the provider said": detected(disks=(LARGER,)),
    "disks.size size may be a total": entry("terms: gcp.pd-balanced, size: 2TiB"),
    "disks.size size of its own": entry("terms: {budget: sum, iops: 300}, size: 2TiB"),
    "disks.size no size": entry("terms: aws.gp3"),
    "disks.monitored all excluded": settings("discovery: {exclude: ['.']}"),
    "disks.monitored none included": settings("discovery: {include: ['^x']}"),
    "disks.monitored no disk": settings("", disks=(other("loop0"),)),
    "disks.entries unused entry while a disk has no terms": settings(
        "disks: [{match: {serial: typo}, terms: aws.gp3}]"
    ),
    "disks.entries unused entry": settings(
        SETTINGS.replace("[", "[{match: {serial: other}, terms: aws.gp2}, ", 1)
    ),
    "disks.entries shadowed entry": settings(
        SETTINGS.replace("}]", "}, {match: {device: nvme1n1}, terms: aws.gp2}]")
    ),
    "disks.entries volume that is not here": detected(API.replace("vol-0a1b", "vol-9"), SETTINGS),
    "disks.machine machine": machine(),
    "disks.machine unknown machine": settings(SETTINGS.replace(TYPE, "")),
    "disks.machine new machine": detected(API.replace("m6i.large", "m99.huge")),
    "disks.machine provider without tables": entry("terms: hetzner.volume"),
    "disks.machine limits of the machine written out": settings(WRITTEN),
    "disks.machine counted for the machine": settings(
        SETTINGS.replace(TYPE, WRITTEN) + WITHOUT_ANOTHER, disks=TWO
    ),
    "disks.machine excluded for the machine": settings(
        SETTINGS.replace("large}", "large, exclude: ['^nvme2']}") + WITHOUT_ANOTHER, disks=TWO
    ),
    "disks.machine not monitored": settings(
        SETTINGS + "discovery: {exclude: ['^nvme2', '^nvme3']}\n",
        disks=(*TWO, other("nvme2n1p1", partition_of="nvme2n1"), other("loop0")),
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
    "daemon. no answer": NO_DAEMON,
    "daemon. no answer, no unit": without_unit(NO_DAEMON),
    **{
        f"daemon. status {status}": daemon(samples=(), metrics_status=status)
        for status in (400, 401, 404, 429, 503, 500)
    },
    "daemon. not seen": daemon(samples=(), unseen="it requires a certificate"),
    "daemon. another program": daemon(samples=()),
    "daemon.running not ready": daemon(ready_status=503, ready_text=NOT_READY),
    "daemon.scraped not ready, and not scraped": daemon(ready_status=503),
    "daemon.running not ready, without a reason": daemon(ready_status=503, ready_text=""),
    "daemon.version another version": daemon(sample("build_info", version="0.9")),
    "daemon.configuration reload failed": NOT_RELOADED,
    "daemon.configuration reload failed, no file": msgspec.structs.replace(
        NOT_RELOADED, configuration=NO_FILE
    ),
    "daemon.configuration changed since": changed_at(NOW_S + 60, NOW_S + 120),
    "daemon.configuration changed before": changed_at(NOW_S - 60),
    "daemon.configuration nothing of reloads": daemon(samples=(ONLY_VERSION,)),
    "daemon.parts parts": daemon(OF_STATE, sample("collector_success", 1.0, collector="disks")),
    "daemon.errors errors": daemon(
        OF_STATE,
        sample("errors_total", 3.0, source="state"),
        sample("errors_total", 1.0, source="systemd"),
        sample("errors_total", 2.0, source="terms"),
    ),
    "daemon.errors failed ticks": daemon(SAMPLER),
    "daemon.parts failing ticks": daemon(
        SAMPLER, sample("collector_success", 0.0, collector="sampler")
    ),
    "daemon.errors no failed ticks": daemon(sample("errors_total", 0.0, source="sampler")),
    **{
        f"daemon.ticks missed ticks: {missed:g} of 99": daemon(
            sample("sampler_ticks_total", 99.0), sample("sampler_missed_ticks_total", missed)
        )
        for missed in (0.0, 1.0, 2.0)
    },
    "daemon.ticks nothing of ticks": daemon(samples=(ONLY_VERSION, sample("sampler_ticks_total"))),
    **{
        f"daemon.scraped {scrape}": daemon(ready_text=f"ready\n{scrape}")
        for scrape in ("last scrape 0 s ago", "last scrape 300 s ago", "last scrape 301 s ago")
    },
    **{
        f"daemon.scraped never scraped at {url}": daemon(
            url=url, ready_text="ready\nnever scraped"
        )
        for url in ("http://[::1]:99/metrics", "http://localhost/metrics", "unix:///run/d.sock")
    },
    "disks.monitored disks as by the files here": daemon(AS_STARTED[0]),
    "disks.monitored other disks than by the files here": daemon(*AS_STARTED),
    "disks.terms other terms than by the files here": daemon(*AS_STARTED),
    "clock. clock": machine(clock=ClockFacts(is_synchronised=True)),
    "clock. clock with an error": machine(clock=ClockFacts(is_synchronised=True, error_s=math.pi)),
    "clock. clock that is not synchronised": machine(
        clock=ClockFacts(is_synchronised=False, error_s=16.0)
    ),
    "clock. clock of which nothing is known": machine(
        clock=ClockFacts(is_synchronised=None, problem="adjtimex failed")
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
    "configuration.file valid": machine(),
    "configuration.file no file": of_file(None, CONFIGURATION),
    "configuration.file two problems": of_file("/e/x.yml", None, "/e/x.yml:1: a\n/e/x.yml:2: b"),
    "configuration.file a problem of catalog.d": of_file(None, None, "/e/catalog.d/x.yml:1: a"),
    "configuration.file not readable by root": of_file("/etc/x.yml", None, NOT_READABLE),
    "configuration.file not readable": of_file("/etc/x.yml", None, NOT_READABLE, is_root=False),
    "configuration. a note, and a type of its own": of_file(
        "x", CONFIGURATION, notes=("disks[0]: beyond",), own_rows=1
    ),
    "configuration.catalog two types": of_file("x", CONFIGURATION, own_rows=2),
    "configuration.terms terms files": of_file(
        "x", CONFIGURATION, terms_problems=("a.yml:1: x\na.yml:2: y", "z")
    ),
    "configuration.web web": of_web(None, "TLS"),
    "configuration.web invalid web": of_web("w.yml:1: a\nw.yml:2: b"),
    "configuration.access access is not known": ONLY_ROOT,
    "state.directory access is not known, state": ONLY_ROOT,
    "configuration.access no user": machine(access=NO_USER),
    "configuration.access denied": machine(access=DENIED),
    "state. state": of_state(None, 2**40),
    "state.directory no directory": of_state("it does not exist"),
    "state.directory read only": of_state(None, 2**40, is_read_only=True),
    "state.directory not writable": of_state(
        None, 2**40, access=AccessFacts("disksla", may_write_state=False)
    ),
    "state.space 31 MiB": of_state(None, 31 * MIB),
    "state.space 32 MiB": of_state(None, 32 * MIB),
}

DENIED_API = API + "problems: [{source: api, reason: denied, message: it failed}]\n"
NOT_ASKED = {"configuration": configured("")}
OPENSTACK = {"provider": "openstack", "detect_unit": None, **NOT_ASKED}


def passing_on(*credentials: str) -> MachineFacts:
    unit = UnitFacts("unit", {"LoadCredential": credentials})
    return machine(**OPENSTACK | {"detect_unit": unit, "has_credentials_file": True})


PROVIDERS: Cases = {
    "provider.machine machine": machine(),
    "provider.machine no machine, with terms": machine(provider=None),
    "provider.machine no machine, no terms": machine(provider=None, **NOT_ASKED),
    "provider.detect terms of people": machine(),
    "provider.detect not asked": machine(**NOT_ASKED),
    "provider.detect not asked, no unit": machine(**NOT_ASKED, detect_unit=None),
    "provider.detect not asked, cannot be": machine(**NOT_ASKED, provider="alibaba"),
    "provider.detect asked": detected(),
    "provider.detect denied": detected(DENIED_API),
    "provider.detect file of people": machine(
        configuration=configured(SETTINGS, terms_file("disks: []", "/e/terms.d/p.yml"))
    ),
    "provider.credentials OpenStack": machine(**OPENSTACK),
    "provider.credentials OpenStack with a file": machine(**OPENSTACK, has_credentials_file=True),
    "provider.credentials VK Cloud": machine(**OPENSTACK | {"provider": "vk"}),
    "provider.credentials AWS": machine(**OPENSTACK | {"provider": "aws"}),
    "provider.credentials not passed on": passing_on(),
    "provider.credentials another is passed on": passing_on("x:/x"),
    "provider.credentials passed on": passing_on("clouds.yaml:/etc/disksla/clouds.yaml"),
    "provider.timer timer": machine(),
    "provider.timer no timer": machine(has_detect_timer=False),
    "provider.timer no timer, no unit": machine(detect_unit=None),
    "provider.timer no timer needed": machine(provider="alibaba"),
}


def shown(cases: Cases) -> Iterator[str]:
    """Yield what the checks say, case after case."""
    for case, facts in cases.items():
        check, _, name = case.partition(" ")
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
