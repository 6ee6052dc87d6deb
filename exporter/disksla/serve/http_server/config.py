"""Schema of the web configuration file: TLS, headers, users and rate limit.

The format is that of Prometheus' exporter-toolkit, and a file has the meaning that it has for
node_exporter. A file is invalid here if Python cannot do what it requests, or if node_exporter
would ignore a part of it.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec

from disksla.base.schema import FieldType, choice, close_match, pattern

ClientAuth = Literal[
    "NoClientCert", "RequestClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"
]
TlsVersion = Literal["TLS10", "TLS11", "TLS12", "TLS13"]

CIPHERS: Mapping[str, str] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
}
"""Suites up to TLS 1.2 that Go considers secure, best first: Go's name, and OpenSSL's."""
TLS13_CIPHERS = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
"""May be listed, and are always enabled: neither Go nor Python can select them."""
CURVES: Mapping[str, str] = {
    "CurveP256": "prime256v1",
    "CurveP384": "secp384r1",
    "CurveP521": "secp521r1",
    "X25519": "X25519",
}
"""Go's name, and OpenSSL's."""

_LONGEST_PEM = 256 * 1024
_LONGEST_HEADER = 8 * 1024
_GO_UNITS_S: Mapping[str, Fraction] = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "\u00b5s": Fraction(1, 10**6),
    "\u03bcs": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
_GO_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)
_BCRYPT_HASH = re.compile(r"\$2[abxy]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}", re.ASCII)


def _parse_flag(text: str) -> bool:
    """Parse a boolean of YAML 1.1, as the toolkit does."""
    for value, spellings in ((True, "y yes on true"), (False, "n no off false")):
        if any(text in {each, each.capitalize(), each.upper()} for each in spellings.split()):
            return value
    raise ValueError(f"found '{text}'; expected true or false")


def _parse_client_auth(text: str) -> str:
    if text in {"RequireAnyClientCert", "RequireClientCert"}:
        raise ValueError(
            f"'{text}' accepts certificates of any issuer, which is not supported;"
            " expected RequireAndVerifyClientCert with client_ca_file"
        )
    return str(_CLIENT_AUTH_CHOICE.parse(text))


def _parse_cipher(text: str) -> str:
    supported = (*CIPHERS, *TLS13_CIPHERS)
    if text not in supported:
        raise ValueError(
            f"found '{text}'{close_match(text, supported)}; expected a suite that Go considers"
            f" secure: {', '.join(supported)}"
        )
    return text


def _parse_header(text: str) -> str:
    if not re.fullmatch(r"[\x20-\x7e]*", text):
        raise ValueError("found characters that a header must not have; expected printable ASCII")
    return text


def _parse_hash(text: str) -> bytes:
    if not _BCRYPT_HASH.fullmatch(text):
        raise ValueError(f"found something else (not shown); expected {_HASH_EXPECTED}")
    return text.encode()


def _parse_go_duration(text: str) -> float:
    """Parse a duration of Go, such as '1m30s', in seconds. Raise ValueError for anything else."""
    if text == "0":
        return 0.0
    parts = _GO_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"found '{text}'; expected {_DURATION_EXPECTED}")
    return float(sum(Fraction(number) * _GO_UNITS_S[unit] for number, unit in parts))


def _parse_count(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise ValueError(f"found '{text}'; expected a whole number such as 10")
    return int(text)


_CLIENT_AUTH_CHOICE = choice(*get_args(ClientAuth))
_CLIENT_AUTH = FieldType(_CLIENT_AUTH_CHOICE.expected, _parse_client_auth)
_HASH_EXPECTED = (
    "a bcrypt hash such as $2b$10$..., of 60 characters, as printed by `htpasswd -nBC 10 ''`"
)
_DURATION_EXPECTED = "a duration such as 1s, 100ms or 1m30s, or 0"

FILE = FieldType("a path of a file, relative to this one", str.strip)
"""config_file.py overrides this field type, to read the file."""

_File = Annotated[str, FILE]
_Pem = Annotated[str, FieldType("certificates in PEM", str, longest=_LONGEST_PEM)]
_SecretPem = Annotated[
    str, FieldType("a private key in PEM", str, longest=_LONGEST_PEM, is_secret=True)
]
_Flag = Annotated[bool, FieldType("true or false", _parse_flag)]
_Cipher = Annotated[str, FieldType("a cipher suite by Go's name", _parse_cipher)]
_Curve = Annotated[str, choice(*CURVES)]
_Header = Annotated[
    str, FieldType("the value of a header, on one line", _parse_header, longest=_LONGEST_HEADER)
]
_Hash = Annotated[bytes, FieldType(_HASH_EXPECTED, _parse_hash, is_secret=True)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all sections: unknown keys are problems."""


class CertificateFiles(NamedTuple):
    """Certificate and key of the server, and the authorities of clients, in PEM."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None
    """None for the authorities that the system trusts."""


class TlsServer(_Strict, frozen=True):
    """Section tls_server_config: certificate, client certificates, versions and ciphers."""

    cert: _Pem = ""
    key: _SecretPem = ""
    client_ca: _Pem = ""
    cert_file: _File = ""
    """Used instead of `cert` if both are set."""
    key_file: _File = ""
    client_auth: Annotated[ClientAuth, _CLIENT_AUTH] | None = msgspec.field(
        default=None, name="client_auth_type"
    )
    """None is NoClientCert, and so is RequestClientCert: what clients send would not be used."""
    client_ca_file: _File = ""
    client_allowed_sans: tuple[Annotated[str, pattern("a name")], ...] | None = None
    """The client's certificate must have one of these names; None for any."""
    min_version: TlsVersion = "TLS12"
    max_version: TlsVersion = "TLS13"
    cipher_suites: tuple[_Cipher, ...] = ()
    """For TLS 1.2 and older; empty for Go's default."""
    curve_preferences: tuple[_Curve, ...] = ()
    prefer_server_cipher_suites: _Flag = True

    def __post_init__(self) -> None:
        """Reject settings that contradict each other, reject all clients, or disable TLS."""
        if all(getattr(self, each.name) == each.default for each in msgspec.structs.fields(self)):
            return
        expected = "expected client_auth_type: RequireAndVerifyClientCert"
        for is_invalid, text in (
            (not self.is_enabled, "no certificate; expected cert_file or cert"),
            (not (self.key or self.key_file), "no private key; expected key_file or key"),
            (
                bool(self.client_ca or self.client_ca_file)
                and self.client_auth in {None, "NoClientCert"},
                f"client_ca_file is set, but client certificates are not requested; {expected}",
            ),
            (
                self.client_allowed_sans is not None
                and self.client_auth != "RequireAndVerifyClientCert",
                f"client_allowed_sans is set, but client certificates are optional; {expected}",
            ),
            (
                self.min_version > self.max_version,
                f"min_version {self.min_version} is above max_version; expected it at or below",
            ),
            (
                not self.old_ciphers and self.max_version != "TLS13",
                f"cipher_suites has none for {self.max_version}; expected one for TLS 1.2",
            ),
            (
                len(self.curve_preferences) > 1,
                "curve_preferences has several curves; expected one, or none to allow all",
            ),
        ):
            if is_invalid:
                raise ValueError(text)

    @property
    def is_enabled(self) -> bool:
        """Whether the server uses TLS."""
        return bool(self.cert or self.cert_file)

    @property
    def old_ciphers(self) -> tuple[str, ...]:
        """OpenSSL's names of the suites for TLS 1.2 and older; empty if only TLS 1.3 is used."""
        names = self.cipher_suites or CIPHERS
        return tuple(CIPHERS[name] for name in names if name in CIPHERS)


class Headers(_Strict, frozen=True):
    """Headers of every response; the toolkit supports no others."""

    content_security_policy: _Header = msgspec.field(default="", name="Content-Security-Policy")
    frame_options: Annotated[str, choice("deny", "sameorigin")] = msgspec.field(
        default="", name="X-Frame-Options"
    )
    content_type_options: Annotated[str, choice("nosniff")] = msgspec.field(
        default="", name="X-Content-Type-Options"
    )
    xss_protection: _Header = msgspec.field(default="", name="X-XSS-Protection")
    strict_transport_security: _Header = msgspec.field(
        default="", name="Strict-Transport-Security"
    )

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Names and values of the headers that are not empty."""
        pairs = (
            (each.encode_name, str(getattr(self, each.name)))
            for each in msgspec.structs.fields(self)
        )
        return tuple((name, value) for name, value in pairs if value)


class HttpServer(_Strict, frozen=True):
    """Section http_server_config: HTTP versions and headers."""

    http2: _Flag | None = None
    """Accepted without effect; HTTP/1.1 is used."""
    headers: Headers = Headers()


class RateLimit(_Strict, frozen=True):
    """Section rate_limit: a limit on the requests of all clients together."""

    interval_s: Annotated[float, FieldType(_DURATION_EXPECTED, _parse_go_duration)] = (
        msgspec.field(default=0.0, name="interval")
    )
    """Mean time between two requests; 0 for no limit."""
    burst: Annotated[int, FieldType("a whole number such as 10", _parse_count)] = 0
    """Requests that may arrive at once."""

    def __post_init__(self) -> None:
        """Reject a limit that rejects every request."""
        if self.interval_s and not self.burst:
            raise ValueError("burst is 0, which rejects every request; expected 1 or more")


class WebConfig(_Strict, frozen=True):
    """A whole web configuration; the default is that of an empty file."""

    tls: TlsServer = msgspec.field(default=TlsServer(), name="tls_server_config")
    http: HttpServer = msgspec.field(default=HttpServer(), name="http_server_config")
    users: Mapping[str, _Hash] = msgspec.field(default={}, name="basic_auth_users")
    """bcrypt hashes of passwords by user name; empty for no authentication."""
    rate_limit: RateLimit = RateLimit()


def describe(config: WebConfig) -> str:
    """Return a short summary, such as 'TLS 1.2 to 1.3, 1 user'."""
    tls = config.tls
    versions = f"TLS {_dotted(tls.min_version)} to {_dotted(tls.max_version)}"
    client_certificates = {
        "VerifyClientCertIfGiven": ", client certificates verified if given",
        "RequireAndVerifyClientCert": ", client certificates required",
    }.get(tls.client_auth or "", "")
    users = f"{len(config.users)} user{'' if len(config.users) == 1 else 's'}"
    return ", ".join(
        [
            versions + client_certificates if tls.is_enabled else "no TLS",
            users if config.users else "no passwords",
            *(["rate limit"] if config.rate_limit.interval_s else []),
        ]
    )


def _dotted(version: TlsVersion) -> str:
    return f"{version[3]}.{version[4]}"
