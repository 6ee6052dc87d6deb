"""A procfs in which all descriptors can be read, where a sandbox keeps process 1 to itself."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

PROCFS = Path("/proc")
FIRST = PROCFS / "1"


def is_first_hidden() -> bool:
    """Return whether root may not read what process 1 has open."""
    try:
        return not [*map(os.stat, (FIRST / "fd").iterdir())]
    except PermissionError:
        return True
    except FileNotFoundError:  # it has closed one
        return False


@contextmanager
def visible_processes() -> Iterator[Path]:
    """Yield procfs, or links to all of its present processes but the first."""
    if not is_first_hidden():
        yield PROCFS
        return
    with TemporaryDirectory() as name:
        view = Path(name)
        (view / FIRST.name / "fd").mkdir(parents=True)
        (view / FIRST.name / "mountinfo").symlink_to(PROCFS / "self/mountinfo")
        for entry in PROCFS.iterdir():
            with suppress(FileExistsError):
                target = entry.readlink() if entry.is_symlink() else entry
                (view / entry.name).symlink_to(target)
        yield view


def seeing_all(command: Sequence[str]) -> list[str]:
    """Return a command that is run where process 1 looks as if it had nothing open."""
    if not is_first_hidden():
        return [*command]
    script = f'mount -t tmpfs -o ro disksla-test {FIRST} && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, "sh", *command]
