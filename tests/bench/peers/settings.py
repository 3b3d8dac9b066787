"""What a run against the peers is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
WORKERS = 2


@dataclass(frozen=True)
class PeerSettings:
    """Sizes and repetitions; ``quick()`` gives a smoke run.

    ``spare_seconds``: where ``rounds`` take less, more follow: short works need more of them for a steady median.
    ``makers``: whose tables are scanned and queried; ``queries``: numbers of TPC-H and TPC-DS, all without one.
    ``other_engines``: run these queries too. ``sessions``: of a table's life. ``micro_batches``: of one block of one
    side; blocks alternate.
    ``memory_works``: the first so many of planning, full scan, write, changes of rows and vacuum. ``change_rows``,
    ``change_files``: of the table whose rows are changed. ``sail``: it is compared, too.
    ``read_files``, ``pruned_files``, ``planned_files``: of the tables on disk that are read whole, of which one file is
    read, and of which none is. ``stored_files``: of a table in a store.
    ``small_files``: that become few. ``many_files``: that are restored, cloned and converted.
    ``race_writers``: change one table at once. ``race_commands``: of each kind by each of them. ``race_seconds``: other
    engines begin no command after it. ``race_reference_files``: the tables that the reference changes too.
    """

    data: Path
    scale: float = 1.0
    rounds: int = 3
    spare_seconds: float = 240
    planning_files: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    data_files: int = 16
    makers: tuple[str, ...] = ("reference",)
    queries: tuple[int, ...] = ()
    other_engines: bool = True
    sessions: int = 5
    commits_of_a_session: int = 40
    life_rows: int = 1_000_000
    commits: int = 1000
    micro_batches: int = 10
    memory_rounds: int = 1
    memory_works: int = 7
    change_rows: int = 5_000_000
    change_files: int = 8
    sail: bool = False
    read_files: int = 20_000
    pruned_files: int = 100_000
    planned_files: int = 1_000_000
    stored_files: int = 8_000
    small_files: int = 2_000
    many_files: int = 100_000
    race_writers: int = 8
    race_commands: int = 200
    race_seconds: float = 60
    race_reference_files: tuple[int, ...] = (1, 8, 100)

    @staticmethod
    def quick(data: Path) -> PeerSettings:
        """A few minutes: shows that everything runs; its ratios mean little."""
        return PeerSettings(
            data,
            scale=0.01,
            rounds=1,
            spare_seconds=0,
            planning_files=(1000,),
            data_files=4,
            makers=("reference",),
            sessions=2,
            commits_of_a_session=3,
            life_rows=20_000,
            commits=20,
            micro_batches=3,
            memory_rounds=1,
            memory_works=1,
            change_rows=20_000,
            read_files=40,
            pruned_files=1_000,
            planned_files=1_000,
            stored_files=40,
            small_files=40,
            many_files=400,
            race_writers=2,
            race_commands=2,
            race_seconds=15,
            race_reference_files=(8,),
        )

    @property
    def scratch(self) -> Path:
        """What a work writes and removes again."""
        return self.data / "peers-scratch"
