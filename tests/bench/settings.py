"""What a run of the benchmarks is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Settings:
    """Sizes and repetitions; ``quick()`` gives a smoke run."""

    data: Path
    rounds: int = 5
    planning_files: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    commits: int = 1000
    scan_rows: int = 20_000_000
    scan_files: int = 8
    small_files: int = 1000
    native_files: tuple[int, ...] = (1000, 10_000, 100_000)
    small_file_rows: int = 5000
    wide_columns: int = 5000
    short_rounds: int = 30
    write_commits: int = 50
    store_files: tuple[int, ...] = (10_000, 1_000_000)
    store_rows: int = 10_000_000
    deltalake: str = "deltalake"
    checkout: Path = CHECKOUT

    @staticmethod
    def quick(data: Path) -> Settings:
        """Small enough to see in a minute that everything runs; its ratios mean little."""
        return Settings(
            data,
            rounds=1,
            planning_files=(1000, 5000),
            commits=20,
            scan_rows=200_000,
            small_files=50,
            native_files=(50,),
            small_file_rows=500,
            wide_columns=200,
            short_rounds=3,
            write_commits=5,
            store_files=(1000,),
            store_rows=100_000,
        )
