"""A directory tree in the layout of sysfs."""

from pathlib import Path


def add_device(sysfs: Path, path: str, number: str, size_bytes: int, **attributes: str) -> None:
    """Add one block device to a directory in the layout of sysfs."""
    directory = sysfs / "devices" / path
    directory.mkdir(parents=True)
    for name, content in {"dev": number, "size": str(size_bytes // 512), **attributes}.items():
        (directory / name).write_text(f"{content}\n")
    listing = sysfs / "class" / "block"
    listing.mkdir(parents=True, exist_ok=True)
    (listing / directory.name).symlink_to(directory)
