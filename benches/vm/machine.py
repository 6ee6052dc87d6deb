"""The virtual machine from outside: QEMU, its disks, their limits, and its trace."""

import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from vm.guest import Channel, Guest
from vm.limits import QemuLimits

QEMU = "qemu-system-x86_64"
EVENTS = (
    *("virtio_blk_handle_read", "virtio_blk_handle_write", "virtio_blk_req_complete"),
    *("blk_root_attach", "blk_co_preadv", "blk_co_pwritev"),
    *("bdrv_co_preadv_part", "bdrv_co_pwritev_part"),
)
"""Events of QEMU's trace; vm/truth.py says what they mean."""
_BOOT_S = 240.0
_UNPLUG_S = 60.0
_END_S = 10.0


class Machine:
    """A virtual machine that runs."""

    def __init__(self, qmp: Channel, agent: Channel, trace: Path) -> None:
        self.guest = Guest(agent)
        self._qmp = qmp
        self._trace = trace
        numbers = qmp.execute("query-version")["qemu"]
        self.version = "{major}.{minor}.{micro}".format_map(numbers)

    def reset(self) -> None:
        """Boot again, as after a power failure, and wait for the agent."""
        self._qmp.execute("system_reset")
        self._qmp.wait_for("RESET", _END_S)
        self._qmp.wait_for("VSERPORT_CHANGE", _BOOT_S, open=True, id="agent")

    def trace_bytes(self) -> int:
        """Return the size of the trace up to now."""
        return self._trace.stat().st_size

    def trace_since(self, offset: int) -> list[str]:
        """Return the lines of the trace from an offset on."""
        with self._trace.open("rb") as file:
            file.seek(offset)
            return file.read().decode().splitlines()

    def create_disk(self, name: str, file: Path) -> None:
        """Open a file as a disk that is not plugged in."""
        self._qmp.execute(
            "blockdev-add", {"driver": "file", "node-name": name, "filename": str(file)}
        )

    def plug_device(self, driver: str, name: str, options: Mapping[str, str]) -> None:
        """Plug a disk in as a device with these options."""
        self._qmp.execute("device_add", {"driver": driver, "drive": name, "id": name, **options})

    def plug(self, name: str, *, write_cache: bool) -> None:
        """Plug a disk in; its serial number is its name.

        It discards and zeroes nothing: the trace has no events for that.
        """
        options = {
            "serial": name,
            "write-cache": "on" if write_cache else "off",
            "discard": "off",
            "write-zeroes": "off",
        }
        self.plug_device("virtio-blk-pci", name, options)

    def unplug(self, name: str) -> None:
        """Unplug a disk, and wait until the virtual machine has released it."""
        self._qmp.execute("device_del", {"id": name})
        self._qmp.wait_for("DEVICE_DELETED", _UNPLUG_S, device=name)

    def remove_disk(self, name: str) -> None:
        """Close a disk that is unplugged."""
        self._qmp.execute("blockdev-del", {"node-name": name})

    def throttle(self, name: str, limits: QemuLimits, group: str | None = None) -> float:
        """Set the limits of a disk, or of a throttle group that it is then in.

        Return when, in wall-clock time of the host.
        """
        given = {
            key: value for key, value in msgspec.to_builtins(limits).items() if value is not None
        }
        absent = dict.fromkeys(("bps", "bps_rd", "bps_wr", "iops", "iops_rd", "iops_wr"), 0)
        device = f"/machine/peripheral/{name}/virtio-backend"
        of_group = {} if group is None else {"group": group}
        self._qmp.execute("block_set_io_throttle", {"id": device, **absent, **given, **of_group})
        return time.time()

    def pause(self, seconds: float) -> tuple[float, float]:
        """Stop and continue the virtual machine; return when, in wall-clock time of the host."""
        self._qmp.execute("stop")
        stopped = self._qmp.wait_for("STOP", _END_S)
        time.sleep(seconds)
        self._qmp.execute("cont")
        return stopped.at_s, self._qmp.wait_for("RESUME", _END_S).at_s


@contextmanager
def booted(
    image: Path, package: Path, directory: Path, options: Iterable[str] = ()
) -> Iterator[Machine]:
    """Boot a virtual machine, and end it after the block. The package is a disk, too.

    `options` are further options of QEMU.
    """
    with ExitStack() as undo:
        trace = directory / "trace"
        (directory / "events").write_text("".join(f"{event}\n" for event in EVENTS))
        log = undo.enter_context((directory / "qemu.log").open("wb"))
        command = [*_command(image, package, directory, trace), *options]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        undo.callback(_end, process)
        qmp = undo.enter_context(Channel(directory / "qmp"))
        qmp.execute("qmp_capabilities")
        agent = undo.enter_context(Channel(directory / "agent"))
        qmp.wait_for("VSERPORT_CHANGE", _BOOT_S, open=True, id="agent")
        yield Machine(qmp, agent, trace)


def _command(image: Path, package: Path, directory: Path, trace: Path) -> list[str]:
    """Return the command of QEMU.

    The root disk is on another bus, so that events of virtio-blk are those of disks under test.
    The HPET is emulated: it is the clock of the host, which stops while the machine is paused.
    """
    kernel = "root=LABEL=vm rw console=ttyS0 quiet clocksource=hpet"
    return [
        *(QEMU, "-no-user-config", "-nodefaults", "-display", "none", "-nic", "none"),
        *("-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2"),
        *("-m", "1536", "-serial", f"file:{directory / 'console'}"),
        *("-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd"), "-append", kernel),
        *("-device", "virtio-scsi-pci"),
        *("-drive", f"file={image / 'root.ext4'},format=raw,if=none,id=root,snapshot=on"),
        *("-device", "scsi-hd,drive=root"),
        *("-drive", f"file={package},format=raw,if=none,id=package,readonly=on"),
        *("-device", "scsi-hd,drive=package,serial=package"),
        *("-device", "virtio-serial-pci"),
        *("-chardev", f"socket,path={directory / 'agent'},server=on,wait=off,id=agent"),
        *("-device", "virtserialport,chardev=agent,id=agent,name=org.qemu.guest_agent.0"),
        *("-qmp", f"unix:{directory / 'qmp'},server=on,wait=off"),
        *("-msg", "timestamp=on", "-trace", f"events={directory / 'events'},file={trace}"),
    ]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
