"""Encryption: the TLS that a server speaks with its own certificate."""

from __future__ import annotations

import ssl
from pathlib import Path

from msp_bridge.access.secret_file import SecretFile
from msp_bridge.errors import ConfigurationError


def encryption(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.2 or newer with these files (PEM; the key without a passphrase). Raises ConfigurationError."""
    SecretFile(key, "--tls-key").read()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # A passphrase would be asked for on the terminal, which may be nobody's.
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:  # SSLError is one
        raise ConfigurationError(
            f"--tls-cert, --tls-key: {certificate} and {key} can't be used ({error}); they must be a certificate in "
            "PEM and its key, without a passphrase"
        ) from None
    return context
