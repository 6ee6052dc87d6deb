"""A directory like that of cgroup v2, whose `io.stat` tests set."""

import shutil
from pathlib import Path

from disksla.base.operating_system.machine import Roots

NUMBER = "254:0"
"""Of the disk vda."""


class CgroupTree:
    """The control groups of a machine, below a directory of the test."""

    def __init__(self, directory: Path, *, controllers: str = "cpu io memory") -> None:
        self.roots = Roots(procfs=directory, sysfs=directory, rootfs=directory)
        self.root = directory / "fs" / "cgroup"
        self.root.mkdir(parents=True)
        (self.root / "cgroup.controllers").write_text(f"{controllers}\n")
        (self.root / "cgroup.subtree_control").write_text(f"{controllers}\n")
        (self.root / "io.stat").write_text("")

    def make(self, *paths: str, has_io: bool = True) -> None:
        """Make groups, and those above them."""
        for path in paths:
            directory = self.root / path
            for each in (directory, *directory.parents):
                if each == self.root:
                    break
                each.mkdir(parents=True, exist_ok=True)
                if has_io and not (each / "io.stat").exists():
                    (each / "io.stat").write_text("")

    def remove(self, path: str) -> None:
        """Remove a group; those above it keep what it did."""
        shutil.rmtree(self.root / path)

    def set(
        self,
        path: str,
        *,
        read: int = 0,
        written: int = 0,
        reads: int = 0,
        writes: int = 0,
        number: str = NUMBER,
    ) -> None:
        """Set what a group did at the disk since it was made."""
        (self.root / path / "io.stat").write_text(
            f"{number} rbytes={read} wbytes={written} rios={reads} wios={writes} dbytes=0 dios=0\n"
        )

    def wrote(self, amounts: dict[str, tuple[int, int]]) -> None:
        """Set the bytes and the requests that groups wrote."""
        for path, (written, writes) in amounts.items():
            self.set(path, written=written, writes=writes)

    def limit(self, path: str, text: str) -> None:
        """Set the own limits of a group at the disk, such as `wiops=50`."""
        (self.root / path / "io.max").write_text(f"{NUMBER} {text}\n")
