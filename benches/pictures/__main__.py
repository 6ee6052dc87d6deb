"""`make pictures`: pictures of the pages, of `disksla top` and of a dashboard, on throttled disks.

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
from pictures.dashboard import IOPS, missing, scraping, take_dashboard
from pictures.sources import RECORD, hashes
from pictures.terminal import DARK, LIGHT, TERMINAL_PICTURES, TerminalPicture, screen_of, svg
from support.daemon_process import DISKSLA, Daemon

_HERE = Path(__file__).parent
_PICTURES = _HERE.parent.parent / "docs" / "pictures"
_CHROMIUM = "chromium"
_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_DARK = ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")


_TAKEN_S = 60.0
"""How long before the end of the loads the first picture is taken: browsers take seconds."""
_BURSTING = 1
"""The disk of the dashboard: it uses up its burst credits."""


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
        Picture("status-page-wide-light", "/", 1920, 1000),
        Picture("status-page-wide-dark", "/", 1920, 1000, is_dark=True),
        Picture("status-page-phone-light", "/", 412, 900),
        Picture("status-page-phone-dark", "/", 412, 900, is_dark=True),
        Picture("disk-page-light", f"/disk?name={device}", 1280, 1000),
    ]


def take(picture: Picture, address: str, directory: Path) -> None:
    """Write a picture of a page of the daemon."""
    _screenshot(picture, f"http://{address}{picture.path}", directory)


def take_terminal(picture: TerminalPicture, rows: Sequence[str], directory: Path) -> None:
    """Write pictures of what `disksla top` has shown, dark and light."""
    with tempfile.TemporaryDirectory(prefix="disksla-terminal-") as home:
        for theme, name in ((DARK, f"{picture.name}-dark"), (LIGHT, f"{picture.name}-light")):
            file = Path(home) / f"{name}.svg"
            file.write_text(svg(picture, rows, theme), encoding="utf-8")
            _screenshot(Picture(name, "", *picture.size), file.as_uri(), directory)


def _screenshot(picture: Picture, url: str, directory: Path) -> None:
    """Write a PNG of what a browser shows."""
    with tempfile.TemporaryDirectory(prefix="disksla-browser-") as profile:
        command = [
            *(_CHROMIUM, *_QUIET, f"--user-data-dir={profile}"),
            f"--screenshot={directory / picture.name}.png",
            f"--window-size={picture.width},{picture.height}",
            *(_DARK if picture.is_dark else ()),
            url,
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    write(f"{directory / picture.name}.png")


def _load(target: Target, lab_disk: LabDisk) -> None:
    for phase in lab_disk.load:
        run_phase(target, phase)


@contextmanager
def loaded(seconds: float) -> Iterator[tuple[Daemon, list[str]]]:
    """Yield a daemon, and its disks, when they begin to be loaded; end after this time."""
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
        yield daemon, [disk.device for disk in disks]
        for load in loads:
            load.result()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write all pictures."""
    parser = argparse.ArgumentParser(prog="pictures", description="take pictures of the pages")
    parser.add_argument("--seconds", type=float, default=360.0, help="duration of the loads")
    parser.add_argument("--directory", type=Path, default=_PICTURES, metavar="DIR")
    options = parser.parse_args(arguments)
    if shutil.which(_CHROMIUM) is None:
        write("pictures: SKIPPED: needs chromium")
        return 0
    if lacking := missing():
        write(f"pictures of the dashboard: SKIPPED: {lacking}")
    options.directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as undo:
        daemon, devices = undo.enter_context(loaded(options.seconds))
        server = None if lacking else undo.enter_context(scraping(daemon.address))
        since_s = time.time()
        time.sleep(options.seconds - _TAKEN_S)
        until_s = time.time()
        screens = [(each, screen_of(each, daemon.address)) for each in TERMINAL_PICTURES]
        for picture in pictures(devices[0]):
            take(picture, daemon.address, options.directory)
        if server is not None:
            disk = {"instance": daemon.address, "device": devices[_BURSTING]}
            for file in take_dashboard(IOPS, server, disk, (since_s, until_s), options.directory):
                write(str(file))
    for terminal, rows in screens:
        take_terminal(terminal, rows, options.directory)
    if server is not None:
        (options.directory / RECORD.name).write_text(hashes(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    start(main)
