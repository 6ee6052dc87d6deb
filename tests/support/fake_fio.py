"""A fio that does what a test wants, after holding the words it was given against its duty."""

import sys
from pathlib import Path

import psutil

_SCRIPT = """#!{python} -IS
# Without site packages, coverage among them: it may not write a byte of what it finds.
import os, signal, subprocess, sys, time
from pathlib import Path

if sys.argv[1:] == ["--version"]:
    print({version!r})
    raise SystemExit({version_status!r})
words = dict(word.removeprefix("--").partition("=")[::2] for word in sys.argv[1:])
HERE = Path({here!r})
sys.path.append({packages!r})
(HERE / f"pid.{{os.getpid()}}").touch()  # that much is allowed to one who may not write a byte

def must(condition, what):
    if not condition:
        print("fake fio:", what, file=sys.stderr)
        raise SystemExit(97)

reads_only = words["rw"] in ("read", "randread")
(HERE / ("told-to-read-only" if "readonly" in words else "may-write")).touch()
must(("readonly" in words) == reads_only, "readonly unless it writes")
must(Path(words["filename"].replace("\\\\:", ":")).is_absolute(), "a whole path")
must(words["allow_file_create"] == "0", "what is gone is not made anew")
must(words["allow_mounted_write"] == "0", "a mounted disk is never written")
must(words["direct"] == "1", "past the page cache")
must(words["invalidate"] == "0", "the page cache of others is left alone")
must("thread" in words, "no worker in another session")
must(words["output-format"] == "json+", "latency bins")
must(float(words["runtime"].removesuffix("ms")) > 0, "an end")
must(not sys.stdin.read(), "nothing to read")
must(os.getsid(0) == os.getpgid(0) == os.getpid(), "a session of its own")
{body}
"""

HANGS = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
(HERE / "hangs").touch()
while True:
    time.sleep(60)
"""

HAS_A_GRANDCHILD = """
code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
grandchild = subprocess.Popen([sys.executable, "-c", code])
(HERE / f"grandchild.{grandchild.pid}").touch()
(HERE / "hangs").touch()
grandchild.wait()
"""

LEAVES_A_GRANDCHILD = """
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
(HERE / f"grandchild.{grandchild.pid}").touch()
os.write(1, (HERE / "answer").read_bytes())
"""

ANSWERS = """
os.write(1, (HERE / "answer").read_bytes())
"""

PRINTS_FOR_EVER = """
while True:
    os.write(1, b"{" * 65536)
"""

COMPLAINS_FOR_EVER = """
while True:
    os.write(2, b"no " * 20000)
"""


def fake_fio(
    directory: Path, body: str, *, version: str = "fio-3.33", version_status: int = 0
) -> Path:
    """Write the program, for `find_fio(str(directory))`; it leaves marks of itself there."""
    script = directory / "fio"
    script.write_text(
        _SCRIPT.format(
            python=sys.executable,
            version=version,
            version_status=version_status,
            here=str(directory),
            packages=str(Path(psutil.__file__).parent.parent),
            body=body,
        ),
        encoding="utf-8",
    )
    script.chmod(0o755)
    return script


def pid_left(directory: Path, whose: str = "pid") -> int:
    """Give the number of the process that the last fake was, or its `grandchild`."""
    [mark] = directory.glob(f"{whose}.*")
    return int(mark.suffix[1:])
