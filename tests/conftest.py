"""What every run of the tests says of itself."""

from __future__ import annotations

from tests.support.sampling import exhaustive, seed


def pytest_report_header() -> str:
    part = "everything" if exhaustive() else f"a sample of the exhaustive tests, SAMPLE_SEED={seed()}"
    return f"delta_pyds: {part}"
