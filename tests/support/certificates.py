"""A certificate of a server on the loopback, and how a JVM comes to trust it."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

# as everybody has it
_PASSWORD = "changeit"


def certificate_for(directory: Path, *hosts: str) -> tuple[Path, Path]:
    """For these names or addresses, by nobody but itself; and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a test")])
    now = dt.datetime.now(dt.timezone.utc)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = directory / "certificate.pem", directory / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return certificate, secret


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def java_trust(certificate: Path) -> str:
    """The options of a JVM that trusts this certificate and no other; their file lies beside it."""
    trusted = pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(certificate.read_bytes()), b"a test")
    store = certificate.with_suffix(".p12")
    encryption = serialization.BestAvailableEncryption(_PASSWORD.encode())
    store.write_bytes(pkcs12.serialize_java_truststore([trusted], encryption))
    trust = "-Djavax.net.ssl.trustStore"
    return f"{trust}={store} {trust}Type=PKCS12 {trust}Password={_PASSWORD}"
