"""The ttar format of node_exporter: a directory as text, so that fixtures can be diffed.

python tests/support/ttar.py pack ARCHIVE DIRECTORY
python tests/support/ttar.py unpack ARCHIVE DIRECTORY

It contains directories, links and text files; a missing newline at the end of a file is added.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

SEPARATOR = "# ttar" + " -" * 36


def unpack(archive: Path, into: Path) -> None:
    """Create the directories, files and links of an archive below `into`."""
    path = into
    lines = iter(archive.read_text().split("\n"))
    for line in lines:
        key, _, value = line.partition(": ")
        if key in {"Path", "Directory"}:
            path = into / value
            (path if key == "Directory" else path.parent).mkdir(parents=True, exist_ok=True)
        elif key == "SymlinkTo":
            path.symlink_to(value)
        elif key == "Lines":
            path.write_text("".join(f"{next(lines)}\n" for _ in range(int(value))))
        elif key == "Mode":
            path.chmod(int(value, 8))
        elif line and not line.startswith("#"):
            raise ValueError(f"{archive}: expected a key of ttar, found {line[:60]!r}")


def pack(directory: Path) -> Iterator[str]:
    """Yield the lines of an archive of a directory; paths are relative to its parent."""
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory.parent)
        if path.is_symlink():
            yield from (f"Path: {name}", f"SymlinkTo: {path.readlink()}", SEPARATOR)
        elif path.is_file():
            lines = path.read_text().removesuffix("\n").split("\n")
            yield from (f"Path: {name}", f"Lines: {len(lines)}", *lines, SEPARATOR)
        elif not any(path.iterdir()):
            yield from (f"Directory: {name}", SEPARATOR)


if __name__ == "__main__":
    command, archive, directory = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if command == "pack":
        archive.write_text("".join(f"{line}\n" for line in pack(directory)))
    else:
        unpack(archive, directory)
