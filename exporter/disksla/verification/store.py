"""Accounts of tests in the state directory: `verify` leaves them, the daemon publishes them."""

import contextlib
import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from disksla.system.state_file import StateFile
from disksla.verification.report import VerificationReport, decode_report, encode_report

log = logging.getLogger("disksla.verification")

_PREFIX = "verification-"
_LONGEST_NAME = 120
_READABLE_BY_ALL = 0o644
"""A daemon that is not root reads what root has measured; nothing in it is secret."""


def save_report(directory: Path, verification: VerificationReport) -> str | None:
    """Save the account of a test, and say why the daemon will not see it, if it will not."""
    if verification.key is None:
        return "the disk has neither serial nor WWN by which it could be known again"
    if verification.verdict not in {"kept", "broken"}:
        return "nothing was proven"
    file = StateFile(directory, file_name(verification.key), mode=_READABLE_BY_ALL)
    file.write(encode_report(verification))
    return file.problem


def file_name(key: str) -> str:
    """Give the name of the file for a disk; a key may hold any character, and many of them."""
    name = quote(key, safe=":", errors="replace")
    if len(name) > _LONGEST_NAME:
        name = hashlib.sha256(name.encode()).hexdigest()
    return f"{_PREFIX}{name}.json"


class ReportStore:
    """The accounts of one directory, read again when a file changes.

    A file that is damaged is set aside, with one message, and counted in `errors`.
    """

    def __init__(self, directory: Path) -> None:
        """Take the directory, which need not be there."""
        self.by_key: Mapping[str, VerificationReport] = {}
        """What is known, by `disk_key`."""
        self.errors = 0
        self.success = True
        """Whether all could be read the last time."""
        self._directory = directory
        self._seen: dict[str, tuple[int, int]] = {}
        self._known: dict[str, VerificationReport] = {}

    def read(self) -> None:
        """Look for what is new, has changed or is gone."""
        found = {}
        for path in sorted(self._directory.glob(f"{_PREFIX}*.json")):
            with contextlib.suppress(OSError):  # gone by now
                status = path.lstat()
                found[path.name] = (status.st_mtime_ns, status.st_ino)
        self.success = True
        for name in self._seen.keys() - found.keys():
            self._known.pop(name, None)
        for name, stamp in found.items():
            if self._seen.get(name) != stamp:
                self._read_one(name)
        self._seen = found
        self.by_key = {each.key: each for each in self._known.values() if each.key is not None}

    def _read_one(self, name: str) -> None:
        self._known.pop(name, None)
        file = StateFile(self._directory, name)
        account = file.read(decode_report)
        if account is not None:
            self._known[name] = account
        self.errors += file.errors
        self.success = self.success and file.problem is None
