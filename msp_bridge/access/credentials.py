"""Credentials: the token that clients must send, the certificate of TLS, and the files that hold these secrets."""

import hashlib
import hmac
import os
import ssl
import stat
from pathlib import Path
from typing import Any, Self

from attrs import field, frozen

from msp_bridge.access import ENVIRONMENT_VARIABLE
from msp_bridge.errors import ConfigurationError
from msp_bridge.jsonrpc.messages import NotJson, dump, parse

AUTHENTICATE = "authenticate"  # the method whose params hold the token
MIN_LENGTH = 16  # characters; 32 hexadecimal digits are recommended, and can't be guessed
HOW_TO_MAKE_ONE = "make one with `openssl rand -hex 32`"
MAX_FILE_SIZE = 64 * 1024  # bytes; a private key has a few thousand
TOKEN_WORDS = (AUTHENTICATE.encode(), b"token")  # bytes that hold a token are likely to hold one of these too


@frozen
class Token:
    """Kept as its digest, so that no log, traceback or dump can show it."""

    _digest: bytes = field(repr=False)

    @classmethod
    def given(cls, file: Path | None, variable: str | None) -> Self | None:
        """The token in `file`, or else `variable`, the one in the environment. Raises ConfigurationError."""
        if file is not None:
            return cls._of(read_secret(file, "--token-file"), f"--token-file: the token in {file}")
        return None if variable is None else cls._of(variable, f"{ENVIRONMENT_VARIABLE}: the token")

    @classmethod
    def _of(cls, text: str, source: str) -> Self:
        token = text.strip()
        if len(token) < MIN_LENGTH:
            length = f"only {len(token)} characters long" if token else "empty"
            raise ConfigurationError(f"{source} is {length}, it needs {MIN_LENGTH} or more", HOW_TO_MAKE_ONE)
        if len(token.split()) > 1:
            raise ConfigurationError(f"{source} must be one word", HOW_TO_MAKE_ONE)
        return cls(_digest(token))

    def matches(self, candidate: str) -> bool:
        """Whether `candidate` is the token. Takes the same time for every wrong one."""
        return hmac.compare_digest(self._digest, _digest(candidate))


def redact_token(body: bytes) -> bytes | None:
    """The message `body` as a trace may record it; None for a batch or malformed bytes that may hold a token."""
    try:
        message = parse(body)
    except NotJson:
        return None if _may_hold_token(body) else body
    match message:
        case list() if _may_hold_token(body):  # a batch, which is rejected
            return None
        case {"method": "authenticate"} | {"params": {"token": _}}:
            return dump(_without_params(message))
    return body


def read_secret(path: Path, option: str) -> str:
    """The text of a file that only its owner, and those whom the owner chose, may read.

    `option` is where the user named the file, for the errors. Raises ConfigurationError when it can't be read, or when
    every user of this machine can.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise ConfigurationError(f"{option}: {path} is not a file")
            if mode & stat.S_IRWXO:
                raise ConfigurationError(f"{option}: every user of this machine may open {path}", f"chmod 600 {path}")
            return file.read(MAX_FILE_SIZE).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{option}: can't read {path}: {reason}") from None


def server_tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.2 or newer with these files (PEM; the key without a passphrase). Raises ConfigurationError."""
    read_secret(key, "--tls-key")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # the default of a Python that Debian has built is OpenSSL's
    try:
        # Without `password`, OpenSSL would ask for a passphrase on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:  # SSLError is one
        raise ConfigurationError(
            f"--tls-cert, --tls-key: {certificate} and {key} can't be used ({error})",
            "they must be a certificate in PEM and its key, without a passphrase",
        ) from None
    return context


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _may_hold_token(data: bytes) -> bool:
    return any(word in data for word in TOKEN_WORDS)


def _without_params(message: dict[str, Any]) -> dict[str, Any]:
    """The part of a message that identifies it; an id or a method may be any JSON value, with a token in it."""
    kept = {name: message[name] for name in ("jsonrpc", "id", "method") if isinstance(message.get(name), int | str)}
    return {**kept, "params": "withheld"}
