"""`make pictures`: pictures of the status page, from a real run on throttled disks of the lab.

Four disks are loaded for five minutes: one that commits with fdatasync is throttled at its limit,
one uses up its burst credits, one gets less than it was promised, and one has no problem.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from lab.disk import all_made
from lab.experiment import configuration
from lab.load import Target, run_phase, target_on
from lab.options import start, write
from lab.scenario import LabDisk, read_scenario
from support.daemon_process import DISKSLA, Daemon

_HERE = Path(__file__).parent
_PICTURES = _HERE.parent.parent / "docs" / "pictures"
_CHROMIUM = "chromium"
_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_DARK = ("--blink-settings=preferredColorScheme=0",)


class Picture(NamedTuple):
    """A page as a browser shows it."""

    name: str
    path: str
    width: int
    height: int
    is_dark: bool = False


def pictures(device: str) -> list[Picture]:
    """Return the pictures: three sizes, light and dark, and the page of one disk."""
    return [
        Picture("status-page-light", "/", 1280, 900),
        Picture("status-page-dark", "/", 1280, 900, is_dark=True),
        Picture("status-page-wide-dark", "/", 1920, 1000, is_dark=True),
        Picture("status-page-phone-light", "/", 412, 900),
        Picture("disk-page-light", f"/disk?name={device}", 1280, 1000),
    ]


def take(picture: Picture, address: str, directory: Path) -> None:
    """Write a picture of a page of the daemon."""
    with tempfile.TemporaryDirectory(prefix="disksla-browser-") as profile:
        command = [
            *(_CHROMIUM, *_QUIET, f"--user-data-dir={profile}"),
            f"--screenshot={directory / picture.name}.png",
            f"--window-size={picture.width},{picture.height}",
            *(
                ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]
                if picture.is_dark
                else []
            ),
            f"http://{address}{picture.path}",
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def _load(target: Target, lab_disk: LabDisk) -> None:
    for phase in lab_disk.load:
        run_phase(target, phase)


@contextmanager
def loaded(seconds: float) -> Iterator[tuple[Daemon, list[str]]]:
    """Yield a daemon, and its disks, when they have been loaded for most of this time."""
    with ExitStack() as undo:
        home = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-pictures-")))
        text = (_HERE / "scenario.yml").read_text(encoding="utf-8")
        text = text.replace("HALF", f"{seconds / 2:.0f}").replace("QUARTER", f"{seconds / 4:.0f}")
        drawn = home / "scenario.yml"
        drawn.write_text(text, encoding="utf-8")
        scenario = read_scenario(drawn)
        disks = undo.enter_context(all_made(drawn, scenario, home))
        targets = [
            undo.enter_context(target_on(disk, lab_disk))
            for disk, lab_disk in zip(disks, scenario.disks, strict=True)
        ]
        config = home / "disksla.yml"
        state = {"state": {"directory": str(home)}}
        config.write_text(json.dumps(configuration(disks, scenario) | state))
        log = undo.enter_context((home / "log").open("w"))
        process = subprocess.Popen(
            [str(DISKSLA), "serve", "--web.listen-address=127.0.0.1:0", f"--config.file={config}"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        daemon = Daemon(process, home / "log")
        undo.callback(daemon.end)
        for disk in disks:
            disk.begin()
        executor = undo.enter_context(ThreadPoolExecutor(len(disks)))
        loads = [
            executor.submit(_load, target, lab_disk)
            for target, lab_disk in zip(targets, scenario.disks, strict=True)
        ]
        time.sleep(seconds - 3)
        yield daemon, [disk.device for disk in disks]
        for load in loads:
            load.result()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write all pictures."""
    parser = argparse.ArgumentParser(prog="pictures", description="take pictures of the pages")
    parser.add_argument("--seconds", type=float, default=304.0, help="duration of the loads")
    parser.add_argument("--directory", type=Path, default=_PICTURES, metavar="DIR")
    options = parser.parse_args(arguments)
    if shutil.which(_CHROMIUM) is None:
        write("pictures: SKIPPED: needs chromium")
        return 0
    options.directory.mkdir(parents=True, exist_ok=True)
    with loaded(options.seconds) as (daemon, devices):
        for picture in pictures(devices[0]):
            take(picture, daemon.address, options.directory)
            write(f"{options.directory / picture.name}.png")
    return 0


if __name__ == "__main__":
    start(main)
