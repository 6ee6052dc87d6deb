"""Reads terms files: whole, when they change, and keeps the last good content of each."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from disksla.base.errors import DiskslaError
from disksla.base.schema.yaml_file import Document, parse_document, read_file
from disksla.promise.catalogue import TermsSource
from disksla.promise.configuration.configuration import (
    Configuration,
    FileEntry,
    TermsFile,
    in_order,
    used_as,
)
from disksla.promise.configuration.settings_file import (
    TermsDirectory,
    read_configuration,
    terms_directories,
    with_terms_files,
)
from disksla.promise.terms_file import LISTS, TermsFileOf

SUFFIXES = (".json", ".yaml", ".yml")
MOST_FILES = 100  # files that are read of one directory
MOST_ENTRIES = 20_000  # disks and volumes in the files of one directory: they take 35 MB


class _Version(NamedTuple):
    """What changes when a file is replaced or written."""

    inode: int
    size_bytes: int
    modified_ns: int


class TermsTrouble(NamedTuple):
    """What is wrong with a directory, a file or entries of a file."""

    text: str  # a line per problem
    source: TermsSource = "file"
    reason: Literal["invalid", "invalid_entry"] = "invalid"
    items: int = 1  # how many entries are invalid, where the others are used


class TermsDirectories:
    """The files of some directories. Use it from one thread at a time."""

    def __init__(self, directories: Sequence[TermsDirectory]) -> None:
        """Prepare; nothing is read before `read`."""
        self.directories = tuple(directories)  # May be changed between two reads
        self.failures: Counter[tuple[TermsSource, str]] = Counter()
        """What could not be read or found out since the start, by source and reason. What
        persists counts once, and once per attempt of `disksla detect`."""
        self._seen: dict[Path, _Version] = {}  # versions of all files at the last call of `read`
        self._read: dict[Path, _Version] = {}  # versions of the files that have been read
        self._failed: Counter[tuple[TermsSource, str]] = Counter()
        """New failures of the files that are being read."""
        self._files: dict[Path, TermsFile] = {}
        """What the files say; of one that became invalid, what it said before."""
        self._troubles: dict[Path, TermsTrouble] = {}
        self._left_out: set[Path] = set()
        """Files that say nothing because there are too many entries before them."""

    def files(self) -> tuple[TermsFile, ...]:
        """Return what the files say, the best source first.

        Of a file that became invalid, this is what it said before.
        """
        return in_order(tuple(self._files.values()))

    @property
    def troubles(self) -> tuple[TermsTrouble, ...]:
        """What is wrong with files and directories, in the order of their paths."""
        return tuple(self._troubles[path] for path in sorted(self._troubles))

    @property
    def problems(self) -> tuple[str, ...]:
        """The texts of `troubles`."""
        return tuple(trouble.text for trouble in self.troubles)

    def has_unread(self) -> bool:
        """Return whether a file has changed that was not read yet."""
        return self._seen != self._read

    def read(self, *, at_once: bool = False) -> bool:
        """Read the files that changed; return whether what they say did.

        A file that has changed since the last call is read in the next one, unless `at_once`: a
        program may still be writing it.
        """
        before, troubles = dict(self._files), dict(self._troubles)
        seen = self._list()
        if self._read == self._seen == seen and self._troubles == troubles:
            return False
        for path in self._left_out:
            self._read.pop(path, None)
        self._left_out.clear()
        for path in self._read.keys() - seen.keys():
            del self._read[path]
            self._files.pop(path, None)
            self._troubles.pop(path, None)
        for path, version in seen.items():
            has_settled = at_once or self._seen.get(path) == version
            if has_settled and self._read.get(path) != version:
                self._read[path] = version
                self._read_file(path, version)
                self._leave_out(path.parent)
        self._seen = seen
        for path, trouble in self._troubles.items():
            if troubles.get(path) != trouble:
                self._failed[trouble.source, trouble.reason] += trouble.items
        self.failures = self.failures + self._failed  # other threads may be reading the old one
        self._failed.clear()
        return self._files != before

    def _list(self) -> dict[Path, _Version]:
        """Return the files there are; of a directory that cannot be listed, those of before."""
        seen: dict[Path, _Version] = {}
        for directory, follows_links in self.directories:
            self._troubles.pop(directory, None)
            try:
                versions = _versions(directory, follow_links=follows_links)
            except OSError as error:
                text = f"cannot read {directory}: {error.strerror}"
                self._troubles[directory] = TermsTrouble(text)
                seen |= {path: v for path, v in self._seen.items() if path.parent == directory}
                continue
            seen |= dict(list(versions.items())[:MOST_FILES])
            if len(versions) > MOST_FILES:
                self._troubles[directory] = TermsTrouble(
                    f"found {len(versions)} files in {directory}; expected at most {MOST_FILES},"
                    " which are read"
                )
        return seen

    def _leave_out(self, directory: Path) -> None:
        """Drop the files of a directory that make it too many entries, the last names first."""
        entries = 0
        for path in sorted(path for path in self._files if path.parent == directory):
            own = len(self._files[path].disks) + len(self._files[path].volumes)
            if entries + own <= MOST_ENTRIES:
                entries += own
                continue
            del self._files[path]
            self._left_out.add(path)
            self._troubles[path] = TermsTrouble(
                f"{path}: found {own} disks and volumes, and {entries} in files before it;"
                f" expected at most {MOST_ENTRIES} in {directory}; this file is left out"
            )

    def _read_file(self, path: Path, version: _Version) -> None:
        """Read a file; keep what it said before if it is invalid as a whole."""
        try:
            document = _read(path, follow_link=dict(self.directories)[path.parent])
        except DiskslaError as error:
            self._troubles[path] = TermsTrouble(str(error))
            return
        said, problems = document.read(TermsFileOf[FileEntry | None], {}, LISTS)
        lines = "\n".join(document.lines(problems))
        if said is None:
            self._troubles[path] = TermsTrouble(lines)
            return
        self._files[path] = used_as(said, str(path), version.modified_ns / 1e9)
        for problem in self._files[path].problems:
            self._failed[problem.source, problem.reason] += 1
        self._troubles.pop(path, None)
        if problems:
            items = (*said.disks, *said.volumes, *said.problems)
            self._troubles[path] = TermsTrouble(
                lines, said.source, "invalid_entry", items.count(None)
            )


def read_terms_files(
    directories: Sequence[TermsDirectory],
) -> tuple[tuple[TermsFile, ...], tuple[str, ...]]:
    """Return what the files of directories say, and what is wrong with them."""
    terms = TermsDirectories(directories)
    terms.read(at_once=True)
    return terms.files(), terms.problems


def read_with_terms(config_file: Path | None) -> tuple[Configuration, tuple[str, ...]]:
    """Return the configuration with what the terms files say, and what is wrong with these files.

    Raise DiskslaError if the configuration is invalid, as `read_configuration` does.
    """
    configuration = read_configuration(config_file)
    directories = terms_directories(config_file, configuration.settings)
    files, problems = read_terms_files(directories)
    return with_terms_files(configuration, files), problems


def _read(path: Path, *, follow_link: bool) -> Document:
    """Return the document in a file. Raise DiskslaError if there is none."""
    data = read_file(path, follow_link=follow_link)
    if not data.strip():
        raise DiskslaError(f"{path}:1: found an empty file; expected disks, or no file")
    return parse_document(data, str(path))


def _versions(directory: Path, *, follow_links: bool) -> dict[Path, _Version]:
    """Return the files of a directory; none if there is no such directory.

    Raise OSError if it cannot be read; what is wrong with a file is not wrong with the directory.
    """
    versions = {}
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if not entry.name.startswith(".") and entry.name.endswith(SUFFIXES):
                    version = _version(entry, follow_links=follow_links)
                    if version is not None:
                        versions[Path(entry.path)] = version
    except FileNotFoundError:
        return {}
    return dict(sorted(versions.items()))


def _version(entry: os.DirEntry[str], *, follow_links: bool) -> _Version | None:
    """Return the version of a file; None of one that was removed meanwhile.

    Of a file that cannot be examined, it is that of the error: reading the file says why.
    """
    try:
        status = entry.stat(follow_symlinks=follow_links)
    except OSError as error:
        is_removed = isinstance(error, FileNotFoundError) and not entry.is_symlink()
        return None if is_removed else _Version(0, -(error.errno or 0), 0)
    return _Version(status.st_ino, status.st_size, status.st_mtime_ns)
