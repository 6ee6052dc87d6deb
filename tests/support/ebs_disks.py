"""NVMe disks of AWS: a directory tree in the layout of sysfs, device nodes, and their answers.

The ioctl is a function that reads the command as the kernel documents it (linux/nvme_ioctl.h).
"""

import ctypes
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from disksla.base.operating_system.unix_socket import UnixSocket
from disksla.clouds.ebs_statistics.helper import Helper
from disksla.clouds.ebs_statistics.nvme import find_devices, read_statistics

EBS = "Amazon Elastic Block Store"
INSTANCE_STORE = "Amazon EC2 NVMe Instance Storage"
Answer = bytes | int | OSError
"""What a controller answers: a page, an NVMe status, or an error of the kernel."""


class Disks:
    """Controllers nvmeN with one namespace nvmeNn1 each."""

    def __init__(self, root: Path) -> None:
        self.sysfs = root / "sys"
        self.dev = root / "dev"
        (self.sysfs / "class" / "block").mkdir(parents=True)
        self.dev.mkdir()
        self.answers: dict[str, Callable[[], Answer]] = {}
        self.commands: list[tuple[int, ...]] = []

    def add(
        self,
        controller: str,
        answer: Callable[[], Answer] | Answer,
        serial: str = "vol0a1b",
        model: str = EBS,
        namespace: str | None = None,
    ) -> None:
        """Attach a disk."""
        directory = self.sysfs / "devices" / "pci0000:00" / "nvme" / controller
        name = namespace or f"{controller}n1"
        (directory / name).mkdir(parents=True)
        (directory / name / "dev").write_text(f"259:{len(self.answers)}\n")
        (directory / name / "size").write_text(f"{2**21}\n")
        (directory / name / "inflight").write_text("0 0\n")
        (directory / "model").write_text(f"{model:40}\n")  # padded, as by the controller
        (directory / "serial").write_text(f"{serial:20}\n")
        (directory / name / "device").symlink_to(f"../../{controller}")
        (self.dev / controller).touch()
        self.answers[controller] = answer if callable(answer) else lambda: answer
        # Last, because the helper finds the disk by it.
        (self.sysfs / "class" / "block" / name).symlink_to(directory / name)

    def remove(self, controller: str) -> None:
        """Detach a disk."""
        (self.sysfs / "class" / "block" / f"{controller}n1").unlink()
        (self.dev / controller).unlink()

    def ioctl(self, descriptor: int, request: int, command: bytearray) -> int:
        """Carry out NVME_IOCTL_ADMIN_CMD as the kernel does."""
        assert request == (3 << 30 | 72 << 16 | ord("N") << 8 | 0x41)  # _IOWR('N', 0x41, 72 bytes)
        opcode, flags, _, nsid, cdw2, cdw3 = struct.unpack_from("<BBHIII", command, 0)
        metadata, address, metadata_length, data_length = struct.unpack_from("<QQII", command, 16)
        words = struct.unpack_from("<6I", command, 40)
        timeout_ms, result = struct.unpack_from("<II", command, 64)
        assert len(command) == 72
        assert not any((flags, cdw2, cdw3, metadata, metadata_length, *words[1:]))
        assert (timeout_ms, result) == (0, 0)
        self.commands.append((opcode, nsid, data_length, words[0]))
        controller = Path(f"/proc/self/fd/{descriptor}").readlink().name
        answer = self.answers[controller]()
        if isinstance(answer, OSError):
            raise answer
        if isinstance(answer, int):
            return answer
        asked = ((words[0] >> 16) + 1) * 4
        assert asked <= data_length, "more is asked for than there is space"
        ctypes.memmove(address, answer[:asked], len(answer[:asked]))
        return 0


@contextmanager
def helping(disks: Disks, path: Path) -> Iterator[Helper]:
    """Run a helper for the disks, on a socket."""
    read = partial(read_statistics, sysfs=disks.sysfs, dev=disks.dev, ioctl=disks.ioctl)
    with UnixSocket(path, socket.SOCK_SEQPACKET).listening() as listening:
        helper = Helper(listening, partial(find_devices, disks.sysfs), read)
        helper.start()
        try:
            yield helper
        finally:
            helper.stop()
