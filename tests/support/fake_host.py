"""A fake procfs and sysfs for the real daemon: one disk with a serial and burst credits."""

from pathlib import Path

from disksla.base.operating_system.machine import Roots

CAPACITY = 30_000.0
CONFIG = """
disks:
  - match: {{serial: vol-1}}
    terms:
      budget: sum
      iops: 300
      burst: {{iops: 2000, iops_credits: 30000}}
state: {{directory: {directory}}}
"""


class FakeMachine:
    """Directories for --path.procfs and --path.sysfs, and a configuration with burst credits."""

    def __init__(self, directory: Path) -> None:
        self.paths = Roots(procfs=directory / "proc", sysfs=directory / "sys")
        self.state = directory / "state"
        self.config = directory / "config.yml"
        self.config.write_text(CONFIG.format(directory=self.state))
        random = self.paths.procfs / "sys" / "kernel" / "random"
        disk = self.paths.sysfs / "class" / "block" / "vdx"
        for path in (self.paths.procfs / "1", random, disk):
            path.mkdir(parents=True)
        (self.paths.procfs / "1" / "mountinfo").write_text("")
        (self.paths.procfs / "stat").write_text("cpu  100 0 50 1000 250 0 0 0 0 0\n")
        self.has_read(0)
        (random / "boot_id").write_text("a7f0f4d0-2b0a-4c1d-9a0c-0f5f0f3a9b11\n")
        for name, text in (("dev", "254:0"), ("size", "2048"), ("inflight", "0 0")):
            (disk / name).write_text(f"{text}\n")
        (disk / "serial").write_text("vol-1\n")

    def has_read(self, reads: int, in_flight: int = 0) -> None:
        """Set the number of completed reads, of 4 KiB each, and of requests in flight."""
        line = f" 254 0 vdx {reads} 0 {8 * reads} 0 0 0 0 0 {in_flight} 0 0\n"
        (self.paths.procfs / "diskstats").write_text(line)

    @property
    def options(self) -> tuple[str, ...]:
        return (
            "--config.file",
            str(self.config),
            "--path.procfs",
            str(self.paths.procfs),
            "--path.sysfs",
            str(self.paths.sysfs),
        )
