"""What a daemon loads of OpenSSL. In processes of their own, because the tests load all of it."""

import subprocess
import sys

LOAD = "from disksla.system.openssl import load_without_openssl; load_without_openssl()"
SHOW = "import sys; print('ssl' in sys.modules, 'libcrypto' in open('/proc/self/maps').read())"


def run(*statements: str) -> str:
    """Return what a new Python prints."""
    script = "\n".join(statements)
    return subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout


def test_openssl_is_not_loaded() -> None:
    assert run("import asyncio, hashlib", SHOW) == "True True\n"
    assert run(LOAD, "import asyncio, hashlib, hmac, secrets", SHOW) == "False False\n"


def test_it_can_be_loaded_later() -> None:
    later = "import ssl; ssl.create_default_context()"
    assert run(LOAD, later, SHOW) == "True True\n"


def test_hashes_are_the_same() -> None:
    hashes = (
        "import hashlib",
        "print(hashlib.sha256(b'disk').hexdigest(), hashlib.sha512(b'disk').hexdigest())",
        "print(hashlib.blake2b(b'disk', key=b'key').hexdigest())",
    )
    assert run(LOAD, *hashes) == run(*hashes)


def test_a_python_without_its_own_hashes_keeps_those_of_openssl() -> None:
    """As built with --with-builtin-hashlib-hashes=blake2."""
    leave_out = "import sys; sys.modules.update(_md5=None, _sha2=None, _sha256=None)"
    shown = "import hashlib; print(hashlib.sha256(b'disk').hexdigest())"
    assert run(leave_out, LOAD, shown) == run(shown)


def test_modules_that_were_loaded_stay() -> None:
    before = "import ssl, hashlib; before = ssl, hashlib"
    after = "import ssl, hashlib; print(before == (ssl, hashlib), hashlib.new('sha256').name)"
    assert run(before, LOAD, after) == "True sha256\n"
