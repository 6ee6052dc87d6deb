"""Gathers the facts of this machine, and asks its daemon.

Nothing is written, and only loopback is asked.
"""

import contextlib
import errno
import os
import platform
import ssl
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlencode

import msgspec
from prometheus_client.core import Sample
from prometheus_client.parser import text_string_to_metric_families

from disksla import VERSION
from disksla.base.errors import DiskslaError
from disksla.base.operating_system import provider_of
from disksla.base.operating_system.machine import (
    Roots,
    has_user,
    may_access,
    read_clock_state,
    read_dmi,
    user_name,
)
from disksla.base.operating_system.unix_socket import DEFAULT_EVENTS_SOCKET
from disksla.commands.doctor_checks.daemon_checks import METRICS
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
    WebFacts,
    parse_unit,
)
from disksla.kernel.consumers.groups import find_hierarchy
from disksla.kernel.disks import Disk
from disksla.kernel.disks.hotplug import uevent_monitors
from disksla.kernel.disks.inventory import BlockDevices
from disksla.kernel.performance_events import EventsRequest
from disksla.kernel.performance_events.opened import open_events
from disksla.kernel.performance_events.opening import EventFiles
from disksla.kernel.procfs.files import DiskstatsFile
from disksla.kernel.procfs.iowait_files import HostWaitFiles
from disksla.measure.fio.runner import find_fio
from disksla.promise.catalogue.catalog import load_catalog, operator_files
from disksla.promise.catalogue.machine_tables import providers_with_machines
from disksla.promise.configuration import Configuration, with_kubernetes_volumes
from disksla.promise.configuration.settings_file import (
    DEFAULT_DIRECTORY,
    beyond_catalog,
    catalog_directory,
)
from disksla.promise.configuration.terms_directory import read_with_terms
from disksla.serve.http_server import WebConfig, describe
from disksla.serve.http_server.config_file import read_web_file
from disksla.tell.api import OK
from disksla.tell.api.daemon_client import (
    NO_ANSWER,
    DaemonAddress,
    addresses_of,
    get_page,
    reason_of,
)


def ask_daemon(url: str | None) -> DaemonFacts:
    """Return what the daemon answers, or why it does not.

    Raise DiskslaError if the URL is not of this machine.
    """
    first, *others = addresses_of(url)
    facts = _facts(first)
    for address in others:
        if facts.problem is None:
            break
        before, facts = facts, _facts(address)
        if facts.problem is not None:
            problem = f"{facts.problem}; {before.url}: {before.problem}"
            facts = msgspec.structs.replace(facts, problem=problem)
    return facts


def _facts(address: DaemonAddress) -> DaemonFacts:
    shown = str(address)
    try:
        ready_status, ready = get_page(address, "/-/ready")
        query = urlencode([("name[]", name) for name in METRICS])
        status, page = get_page(address, f"{address.path}?{query}")
    except ssl.SSLError as error:
        return DaemonFacts(shown, None, reason_of(error))
    except NO_ANSWER as error:
        return DaemonFacts(shown, reason_of(error))
    samples = parse_samples(page) if status == OK else ()
    return DaemonFacts(
        url=shown,
        problem=None,
        unseen=None,
        ready_status=ready_status,
        ready_text=ready.strip(),
        metrics_status=status,
        samples=samples,
    )


def parse_samples(page: str) -> tuple[Sample, ...]:
    """Return the samples of a page; none if it is not a page of metrics."""
    try:
        families = tuple(text_string_to_metric_families(page))
    except (IndexError, ValueError):  # the parser raises IndexError at a label without a name
        return ()
    return tuple(sample for family in families for sample in family.samples)


_UNIT = "disksla-exporter.service"
_DETECT_UNIT = "disksla-detect.service"
_TIMER = "etc/systemd/system/timers.target.wants/disksla-detect.timer"
_UNIT_DIRECTORIES = (
    "etc/systemd/system",
    "run/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
)
"""In order of precedence (systemd.unit(5))."""
_CLOUDS_FILE = "clouds.yaml"
DEFAULT_STATE_DIRECTORY = "/var/lib/disksla"


def gather(
    roots: Roots, config_file: Path | None, web_config_file: Path | None, url: str | None
) -> MachineFacts:
    """Return the facts of this machine, whose daemon is asked at `url`.

    None is its Unix socket, or else its port. Raise DiskslaError if it is of another machine.
    """
    daemon = ask_daemon(url)
    configuration, paths = _configuration(config_file, web_config_file)
    settings = configuration.configuration and configuration.configuration.settings
    directory = settings.state.directory if settings else DEFAULT_STATE_DIRECTORY
    unit = _unit(roots, _UNIT)
    kernel, disks = _kernel(roots)
    if configuration.configuration is not None:
        disks = with_kubernetes_volumes(disks, configuration.configuration.terms_files)
    config_directory = config_file.parent if config_file else DEFAULT_DIRECTORY
    return MachineFacts(
        version=VERSION,
        now_s=time.time(),
        cpus=os.cpu_count(),
        is_root=os.geteuid() == 0,
        kernel=kernel,
        provider=provider_of(read_dmi(roots)),
        machine_providers=tuple(providers_with_machines()),
        disks=disks,
        iostats=dict(_iostats(roots, disks)),
        why_not_exact=_why_not_exact(roots, disks),
        configuration=configuration,
        state=_state(Path(directory)),
        access=_access(unit, paths, Path(directory)),
        unit=unit,
        detect_unit=_unit(roots, _DETECT_UNIT),
        has_detect_timer=(roots.rootfs / _TIMER).is_symlink(),
        fio=_fio(),
        clock=_clock(),
        daemon=daemon,
        has_credentials_file=_exists(config_directory / _CLOUDS_FILE),
    )


def _kernel(roots: Roots) -> tuple[KernelFacts, tuple[Disk, ...]]:
    text = problem = None
    file = DiskstatsFile(roots.procfs)
    try:
        text = file.read()
    except OSError as error:
        problem = str(error)
    finally:
        file.close()
    wait, wait_problems = HostWaitFiles(roots.procfs).read()
    devices = BlockDevices(roots)
    disks: tuple[Disk, ...] = ()
    disks_problem = None
    device_problems: tuple[str, ...] = ()
    try:
        disks, device_problems, _ = devices.read()
    except DiskslaError as error:
        disks_problem = str(error)
    _, uevent_problems = uevent_monitors(devices.udev)
    facts = KernelFacts(
        release=platform.release(),
        diskstats=text,
        diskstats_problem=problem,
        has_pressure=wait.pressure_some_s is not None,
        wait_problems=wait_problems,
        disks_problem=disks_problem,
        device_problems=device_problems,
        uses_udev=(roots.sysfs, roots.udev_data) == (Roots().sysfs, Roots().udev_data),
        has_udev_entries=_has_udev_entries(roots.udev_data),
        uevents_problem="; ".join(uevent_problems) or None,
        why_no_consumers=find_hierarchy(roots.sysfs).why_not,
    )
    return facts, disks


def _has_udev_entries(directory: Path) -> bool:
    try:
        return any(path.name.startswith("b") for path in directory.iterdir())
    except OSError:
        return False


def _iostats(roots: Roots, disks: Iterable[Disk]) -> Iterable[tuple[str, str]]:
    for disk in disks:
        try:
            path = roots.block_device(disk.name) / "queue" / "iostats"
            yield disk.name, path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue  # a partition, or a device without a queue


def _why_not_exact(roots: Roots, disks: Iterable[Disk]) -> str | None:
    """Return why this process cannot count data writes; the events are closed again at once."""
    devices = tuple(f"{disk.major}:{disk.minor}" for disk in disks if disk.write_back)
    if not devices:
        return None
    request, files = EventsRequest("data_writes", devices), EventFiles(roots)
    try:
        online = (roots.sysfs / "devices/system/cpu/online").read_text(encoding="ascii")
        open_events(request, online, DEFAULT_EVENTS_SOCKET, files).close()
    except (OSError, DiskslaError) as error:
        return str(error)
    return None


def _configuration(
    config_file: Path | None, web_config_file: Path | None
) -> tuple[ConfigurationFacts, list[Path]]:
    """Return what the files of the operator say, and which files the daemon must read."""
    paths = [] if config_file is None else [config_file]
    configuration: Configuration | None = None
    problem = None
    terms_problems: tuple[str, ...] = ()
    notes: list[str] = []
    try:
        configuration, terms_problems = read_with_terms(config_file)
        notes = beyond_catalog(configuration)
        paths += [Path(file.name) for file in configuration.terms_files]
    except DiskslaError as error:
        problem, configuration = str(error), None
    catalog = catalog_directory(config_file)
    with contextlib.suppress(DiskslaError):  # in the problem of the configuration
        paths += [catalog, *operator_files(catalog)]
    web, web_paths = _web(web_config_file)
    rows = len(configuration.catalog.rows) - len(load_catalog().rows) if configuration else 0
    facts = ConfigurationFacts(
        path=None if config_file is None else str(config_file),
        configuration=configuration,
        problem=problem,
        notes=tuple(notes),
        own_rows=rows,
        terms_problems=terms_problems,
        modified_timestamp_s=_modified_s(config_file),
        web=web,
    )
    return facts, [path for path in (*paths, *web_paths) if _exists(path)]


def _exists(path: Path) -> bool:
    """Return whether this user can see a file; `Path.exists` raises an error where access ends."""
    try:
        path.stat()
    except OSError:
        return False
    return True


def _web(path: Path | None) -> tuple[WebFacts | None, list[Path]]:
    if path is None:
        return None, []
    file = read_web_file(path)
    description = describe(file.config or WebConfig())
    return WebFacts(str(path), file.problem, description), list(file.stamps)


def _modified_s(path: Path | None) -> float | None:
    try:
        return None if path is None else path.stat().st_mtime
    except OSError:
        return None


def _unit(roots: Roots, name: str) -> UnitFacts | None:
    """Return the unit with its drop-ins; None if it is not installed, or cannot be read."""
    directories = [roots.rootfs / name for name in _UNIT_DIRECTORIES]
    unit = next((path for each in directories if (path := each / name).exists()), None)
    if unit is None:
        return None
    drop_ins: dict[str, Path] = {}
    for directory in directories:
        for path in (directory / f"{name}.d").glob("*.conf"):
            drop_ins.setdefault(path.name, path)
    texts = []
    for path in (unit, *(drop_ins[name] for name in sorted(drop_ins))):
        try:
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
    return UnitFacts(str(unit), parse_unit(texts))


def _access(unit: UnitFacts | None, paths: list[Path], state: Path) -> AccessFacts:
    user = (unit and unit.last("User")) or user_name()
    if not has_user(user):
        return AccessFacts(user, "there is no such user", has_user=False)
    try:
        readable = may_access(user, paths, "r")
        writable = may_access(user, [state], "w")
    except DiskslaError as error:
        return AccessFacts(user, str(error))
    denied = [str(path) for path, may_read in readable.items() if not may_read]
    # Without a unit it is this user, who failed to read them before.
    return AccessFacts(user, None, tuple(denied) if unit else (), writable[state])


def _state(directory: Path) -> StateFacts:
    try:
        status = os.statvfs(directory)
    except OSError as error:
        what = "it does not exist" if error.errno == errno.ENOENT else error.strerror
        return StateFacts(str(directory), what)
    if not directory.is_dir():
        return StateFacts(str(directory), "it is not a directory")
    free_bytes = status.f_bavail * status.f_frsize
    is_read_only = bool(status.f_flag & os.ST_RDONLY)
    return StateFacts(str(directory), None, free_bytes, is_read_only)


def _fio() -> FioFacts:
    try:
        fio = find_fio()
    except DiskslaError as error:
        return FioFacts(problem=str(error))
    return FioFacts(str(fio.path), fio.version)


def _clock() -> ClockFacts:
    try:
        state = read_clock_state()
    except DiskslaError as error:
        return ClockFacts(None, str(error))
    return ClockFacts(state.is_synchronised, None, state.error_s)
