"""What the virtual machine is made of, kept in .cache/vm until its sources change."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_CACHE = ROOT / ".cache" / "vm"
_IMAGE = Path(__file__).with_name("image")
_SOURCES = ("exporter", "packaging", "systemd")
"""With setup.cfg; the package contains documents, too, but does not depend on them."""
_GENERATED = ("__pycache__", ".egg-info")


def image(release: str = "bookworm") -> Path:
    """Return the directory of the kernel and the root file system of a release of Debian."""
    return _cached(
        f"image-{release}", [_IMAGE], lambda directory: [str(_IMAGE), str(directory), release]
    )


def package() -> Path:
    """Return the Debian package of this tree."""
    files = [path for name in _SOURCES for path in (ROOT / name).rglob("*") if path.is_file()]
    own = [path for path in files if not any(part in str(path) for part in _GENERATED)]
    directory = _cached(
        "package",
        [*own, ROOT / "setup.cfg"],
        lambda directory: [str(ROOT / "packaging" / "deb"), str(directory)],
    )
    [built] = directory.glob("*.deb")
    return built


def _cached(kind: str, sources: Iterable[Path], command: Callable[[Path], list[str]]) -> Path:
    """Return a directory that a command has filled from the sources, now or before."""
    digest = hashlib.sha256()
    for path in sorted(sources):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(ROOT)} {content}\n".encode())
    directory = _CACHE / f"{kind}-{digest.hexdigest()[:16]}"
    if directory.exists():
        return directory
    for old in _CACHE.glob(f"{kind}-*"):
        shutil.rmtree(old)
    unfinished = _CACHE / f"unfinished-{kind}-{os.getpid()}"
    unfinished.mkdir(parents=True)
    try:
        built = subprocess.run(
            command(unfinished),
            check=False,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if built.returncode:
            raise OSError(f"{built.args[0]}: exit status {built.returncode}: {built.stdout}")
        unfinished.rename(directory)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return directory
