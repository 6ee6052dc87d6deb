"""A directory tree in the layout of sysfs."""

from pathlib import Path

from disksla.base.units import parse_size_bytes


def add_device(sysfs: Path, path: str, number: str, size_bytes: int, **attributes: str) -> None:
    """Add one block device to a directory in the layout of sysfs."""
    directory = sysfs / "devices" / path
    directory.mkdir(parents=True)
    for name, content in {"dev": number, "size": str(size_bytes // 512), **attributes}.items():
        (directory / name).write_text(f"{content}\n")
    listing = sysfs / "class" / "block"
    listing.mkdir(parents=True, exist_ok=True)
    (listing / directory.name).symlink_to(directory)


def host_of_files(directory: Path, *devices: str, mountinfo: str = "") -> list[str]:
    """Make a machine with these whole disks and partitions; return the options for it.

    A device is its name, its number, its size and its attributes: `vdb 254:16 20GiB serial=x`.
    """
    sysfs, procfs, udev = (directory / name for name in ("sys", "proc", "udev"))
    lines = []
    for device in devices:
        name, number, size, *attributes = device.split(" ")
        words = dict(each.split("=", 1) for each in attributes)
        path = f"{words.pop('below')}/{name}" if "below" in words else name
        add_device(sysfs, f"block/{path}", number, parse_size_bytes(size), **words)
        lines.append(f"{number.replace(':', ' ')} {name}{' 0' * 17}\n")
    (procfs / "1").mkdir(parents=True)
    (procfs / "1" / "mountinfo").write_text(mountinfo)
    (procfs / "stat").write_text("cpu  100 0 50 1000 250 0 0 0 0 0\n")
    (procfs / "diskstats").write_text("".join(lines))
    udev.mkdir()
    return [f"--path.sysfs={sysfs}", f"--path.procfs={procfs}", f"--path.udev-data={udev}"]
