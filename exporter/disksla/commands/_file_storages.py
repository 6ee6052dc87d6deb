"""Network file storages that are mounted, as commands print them."""

import sys

from rich.text import Text

from disksla.base.console import SafeConsole
from disksla.base.operating_system import provider_of
from disksla.base.operating_system.machine import read_dmi
from disksla.base.operating_system.roots import Roots
from disksla.base.text import escape_control
from disksla.base.units import format_size
from disksla.commands._context import HostContext
from disksla.kernel.nfs import FileStorage
from disksla.kernel.nfs.nfs_files import read_file_storages


def print_file_storages(host: HostContext, roots: Roots) -> None:
    """Print which network file storages are mounted, and what is said of them."""
    try:
        storages, problems = read_file_storages(roots, provider_of(read_dmi(roots)))
    except OSError:  # said of the list of devices, too
        return
    console = SafeConsole()
    if storages:
        console.print()
    for storage in storages:
        console.print(Text(f"{storage.mount_point}: {_text(host, storage)}"))
    for problem in problems:
        print(f"disksla: {escape_control(problem)}", file=sys.stderr)


def _text(host: HostContext, storage: FileStorage) -> str:
    """Return what a file storage is, and its terms by the first entry for its mount point."""
    of_files = (entry for file in host.configuration.terms_files for entry in file.entries)
    for entry in (*host.settings.disks, *of_files):
        if entry.match.given() == {"mountpoint": storage.mount_point}:
            row = host.catalog.find(entry.terms) if isinstance(entry.terms, str) else None
            size_bytes = entry.size_bytes(binary_gb=row is not None and row.binary_gb)
            options = (f"{name}={value}" for name, value in entry.options.items())
            size = None if size_bytes is None else format_size(size_bytes)
            words = (storage.describe(), row and row.id, *options, size)
            return ", ".join(word for word in words if word)
    return f"{storage.describe()}, terms are not known"
