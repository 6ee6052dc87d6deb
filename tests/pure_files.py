"""Which modules are pure: all but those that are listed here. Print their files, for coverage.

Run as a program, it prints the files of the pure modules for `coverage report --include`.
"""

from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "exporter" / "disksla"
_NAMES = """
apscheduler asyncio bcrypt concurrent ctypes fcntl glob gzip http importlib io logging mmap
multiprocessing os pathlib platform psutil pyudev queue random resource rich secrets select
selectors shutil signal socket ssl stat subprocess sys tempfile threading time urllib yaml
"""
MACHINE = set(_NAMES.split())
"""Modules by which a module reaches files, clocks, processes, sockets, threads or logs."""

TOUCHING = {
    "": "__main__",
    "base": "console package_files",
    "base.operating_system": """
        log machine packets perf_events scheduler state_file systemd unix_socket
    """,
    "base.schema": "yaml_file",
    "clouds.detection": "clouds_file",
    "clouds.ebs_statistics": "client helper nvme",
    "clouds.http_client": "transport",
    "commands": """
        _advise_series _context _daemon _exclusive _identify _latency
        _means _option_table _options _prometheus _provision _recent _textfile advise check
        check_config cli detect disks doctor ebs_statistics explain judge limits open_events record
        replay report serve sweep top verify
    """,
    "commands.doctor_checks": "gather_facts",
    "kernel.consumers": "groups io_stat readers",
    "kernel.disks": "hotplug inventory",
    "kernel.nfs": "nfs_files",
    "kernel.performance_events": "data_writes helper opened opening request_sampler source",
    "kernel.procfs": "files iowait_files",
    "measure.benchmark": "sweep_journal throughput",
    "measure.fio": "device_users process raw_device runner sandbox scratch_file",
    "measure.probes": "probe_runner probe_scheduler",
    "measure.verification": "runner store",
    "promise.catalogue": "catalog machine_tables",
    "promise.configuration": "settings_file terms_directory",
    "serve": "daemon",
    "serve.http_server": "access basic_auth config_file connection server tls turns",
    "serve.metrics": "render",
    "serve.pages": "app",
    "state.pipeline": "sampler",
    "tell": "printed_page",
    "tell.api": "daemon_client",
    "tell.explanation": "machine_limit",
    "tell.top": "sources terminal",
}
"""The modules of each package that reach one of these, themselves or through others."""


def touching_modules() -> set[str]:
    """Return the names of the modules that are listed."""
    return {
        ".".join(filter(None, ("disksla", package, name)))
        for package, names in TOUCHING.items()
        for name in names.split()
    }


def files() -> dict[str, Path]:
    """Return the file of each module, by its name."""
    named = {
        ".".join(("disksla", *path.relative_to(SOURCE).with_suffix("").parts)): path
        for path in sorted(SOURCE.rglob("*.py"))
    }
    return {name.removesuffix(".__init__"): path for name, path in named.items()}


def pure_modules() -> set[str]:
    """Return the names of all modules but those that are listed, and the facade of all."""
    return files().keys() - touching_modules() - {"disksla"}


if __name__ == "__main__":
    pure = pure_modules()
    print(",".join(str(path) for name, path in files().items() if name in pure))  # noqa: T201
