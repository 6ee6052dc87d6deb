"""Verification reports in the state directory: `verify` saves them, the daemon publishes them."""

import contextlib
import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from disksla.base.operating_system.state_file import StateFile
from disksla.measure.verification.report import VerificationReport, decode_report, encode_report

log = logging.getLogger("disksla.verification")

_PREFIX = "verification-"
_LONGEST_NAME = 120
_READABLE_BY_ALL = 0o644
"""`verify` runs as root and the daemon does not; a report contains no secret."""


def save_report(directory: Path, report: VerificationReport) -> str | None:
    """Save a report for the daemon. Return why it was not saved; None if it was."""
    if report.key is None:
        return "the disk has no serial and no WWN to identify it by"
    if report.verdict not in {"kept", "broken"}:
        return "it is not valid, or not complete"
    file = StateFile(directory, file_name(report.key), mode=_READABLE_BY_ALL)
    file.write(encode_report(report))
    return file.problem


def file_name(key: str) -> str:
    """Return the file name for a disk; its key may contain any characters, and be very long."""
    name = quote(key, safe=":", errors="replace")
    if len(name) > _LONGEST_NAME:
        name = hashlib.sha256(name.encode()).hexdigest()
    return f"{_PREFIX}{name}.json"


class ReportStore:
    """The reports in one directory; a file is read again when it changes.

    A damaged file is moved aside, logged once, and counted in `errors`.
    """

    def __init__(self, directory: Path) -> None:
        """Read from this directory, which need not exist."""
        self.by_key: Mapping[str, VerificationReport] = {}
        """The reports by `disk_key`."""
        self.errors = 0
        self.success = True
        """Whether all files could be read the last time."""
        self._directory = directory
        self._files: dict[str, tuple[tuple[int, int], VerificationReport | None]] = {}
        """By name: its time and inode, and its report; None if it is damaged."""

    def read(self) -> None:
        """Read new and changed files; forget removed ones."""
        self.success = True
        files = {}
        for path in sorted(self._directory.glob(f"{_PREFIX}*.json")):
            with contextlib.suppress(OSError):  # removed meanwhile
                status = path.lstat()
                stamp = status.st_mtime_ns, status.st_ino
                known = self._files.get(path.name)
                if known is None or known[0] != stamp:
                    known = stamp, self._read_one(path.name)
                files[path.name] = known
        self._files = files
        self.by_key = {
            each.key: each
            for _, each in files.values()
            if each is not None and each.key is not None
        }

    def _read_one(self, name: str) -> VerificationReport | None:
        file = StateFile(self._directory, name)
        report = file.read(decode_report)
        self.errors += file.errors
        self.success = self.success and file.problem is None
        return report
