"""Tables whose files are opened by credentials that the catalog hands out for some time: a SAS, a token of Google."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.limits import ONLY_A_HANG_S
from tests.support.store_processes import AZURE, GOOGLE, azure_server

# the stores of which there is a server
KINDS = [kind for kind, variable in (("azure", AZURE), ("google", GOOGLE)) if variable in os.environ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_only_its_catalog_opens(kind: str, tmp_path: Path) -> None:
    if kind == "google":
        run("google", os.environ[GOOGLE])
        return
    # adlfs sends a SAS by https alone, so that this server shows a certificate, which the process trusts
    certificate, key = certificate_of_this_machine(tmp_path)
    with azure_server(certificate, key) as url:
        run("azure", url, SSL_CERT_FILE=str(certificate))


def run(kind: str, url: str, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.stores.vended_table", kind, url],
        capture_output=True,
        text=True,
        timeout=ONLY_A_HANG_S,
        cwd=Path(__file__).parents[2],
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "all is well" in done.stdout


def certificate_of_this_machine(directory: Path) -> tuple[Path, Path]:
    """For the loopback, by nobody but itself; and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a test")])
    now = dt.datetime.now(dt.timezone.utc)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = directory / "certificate.pem", directory / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return certificate, secret
