"""OpenSSL, which takes 5 MiB, is loaded by a daemon only if it serves TLS.

asyncio imports `ssl`, and hashlib `_hashlib`. Both do without if the import fails, as in a Python
that was built without OpenSSL: asyncio then has no TLS, which web/tls.py does not use (ADR 18),
and hashlib has its own SHA-2 and BLAKE2. Some distributions build Python without these; there,
hashlib loads OpenSSL.
"""

import importlib
import sys
from importlib.util import find_spec

_USERS = ("asyncio", "hashlib", "hmac")
_OWN_HASHES = ("_md5", "_sha2" if sys.version_info >= (3, 12) else "_sha256")


def load_without_openssl() -> None:
    """Import the modules that would load OpenSSL, without it; `import ssl` works as ever after it.

    Call it before other imports: it changes nothing where these modules are loaded.
    """
    hidden = {"ssl"}
    if all(find_spec(name) is not None for name in _OWN_HASHES):
        hidden.add("_hashlib")
    hidden -= sys.modules.keys()
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # so that importing it fails
    for name in _USERS:
        importlib.import_module(name)
    for name in hidden:
        del sys.modules[name]
