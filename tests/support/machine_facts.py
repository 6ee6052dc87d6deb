"""Facts of a machine on which nothing is wrong, for the tests of `disksla doctor`."""

from typing import Any

import msgspec
from prometheus_client.core import Sample

from disksla.base.errors import DiskslaError
from disksla.base.schema.yaml_file import parse_document
from disksla.base.units import GIB
from disksla.commands.doctor_checks import CheckResult, examine
from disksla.commands.doctor_checks.facts import (
    AccessFacts,
    ClockFacts,
    ConfigurationFacts,
    DaemonFacts,
    FioFacts,
    KernelFacts,
    MachineFacts,
    StateFacts,
    UnitFacts,
)
from disksla.kernel.disks.disk import Disk
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.configuration.configuration import (
    Configuration,
    FileEntry,
    TermsFile,
    used_as,
)
from disksla.promise.configuration.settings_file import parse_settings, with_terms_files
from disksla.promise.terms_file import LISTS, TermsFileOf

CATALOG = load_catalog()
NOW_S = 1_800_000_000.0
SETTINGS = """
disks: [{match: {serial: vol-0a1b}, terms: aws.gp3, size: 500GiB}]
machine: {type: m6i.large}
"""
DISK = Disk(
    "nvme1n1", 259, 0, size_bytes=500 * GIB, serial="vol0a1b", provider="aws", volume="vol-0a1b"
)
KERNEL = KernelFacts("6.12.1", diskstats=f"259 0 nvme1n1{' 0' * 17}\n")


def configuration_of(text: str, *terms_files: TermsFile) -> Configuration:
    settings = parse_settings(text.encode(), "disksla.yml", CATALOG)
    return with_terms_files(Configuration(settings, CATALOG), terms_files)


def configured(text: str, *terms_files: TermsFile) -> ConfigurationFacts:
    return ConfigurationFacts("disksla.yml", configuration_of(text, *terms_files))


def terms_file(
    text: str, name: str = "/state-detect/cloud.json", written_s: float = NOW_S
) -> TermsFile:
    """Return a terms file by its content, in YAML. Raise DiskslaError with its problems."""
    document = parse_document(text.encode(), name)
    file, problems = document.read(TermsFileOf[FileEntry | None], {}, LISTS)
    if file is None or problems:
        raise DiskslaError("\n".join(document.lines(problems)))
    return used_as(file, name, written_s)


def sample(name: str, value: float = 1.0, **labels: str) -> Sample:
    return Sample(f"disksla_{name}", labels, value)


SAMPLES = (
    sample("build_info", version="1.0"),
    sample("collector_success", collector="disks"),
    sample("config_last_reload_successful"),
    sample("config_last_reload_success_timestamp_seconds", NOW_S),
    sample("errors_total", 0.0, source="disks"),
    sample("sampler_missed_ticks_total", 0.0),
    sample("sampler_ticks_total", 864000.0),
)
DAEMON = DaemonFacts(
    "http://127.0.0.1:10056/metrics", None, None, 200, "ready\nlast scrape 12 s ago", 200, SAMPLES
)
UNIT = UnitFacts(
    "/etc/systemd/system/disksla-exporter.service",
    {"User": ("disksla",), "PrivateDevices": ("yes",)},
)
DETECT_UNIT = UnitFacts("/etc/systemd/system/disksla-detect.service")
HEALTHY = MachineFacts(
    version="1.0",
    now_s=NOW_S,
    cpus=2,
    is_root=True,
    kernel=KERNEL,
    provider="aws",
    machine_providers=("aws", "azure", "yandex"),
    disks=(DISK,),
    iostats={"nvme1n1": "1"},
    why_not_exact=None,
    configuration=configured(SETTINGS),
    state=StateFacts("/var/lib/disksla", None, 10 * GIB),
    access=AccessFacts("disksla"),
    unit=UNIT,
    detect_unit=DETECT_UNIT,
    has_detect_timer=True,
    fio=FioFacts("/usr/bin/fio", (3, 33)),
    clock=ClockFacts(is_synchronised=True, error_s=0.01),
    daemon=DAEMON,
    has_credentials_file=False,
)


def machine(**facts: Any) -> MachineFacts:
    """Return the healthy machine with some other facts."""
    return msgspec.structs.replace(HEALTHY, **facts)


def with_disk(**fields: Any) -> MachineFacts:
    """Return the healthy machine with another disk."""
    return machine(disks=(msgspec.structs.replace(DISK, **fields),))


def results(facts: MachineFacts, check: str = "") -> list[CheckResult]:
    """Return the results of a check, or of a group of them, or all."""
    return [result for result in examine(facts) if result.check.startswith(check)]


def result(facts: MachineFacts, check: str) -> CheckResult:
    """Return the only result of a check."""
    [found] = results(facts, check)
    return found
