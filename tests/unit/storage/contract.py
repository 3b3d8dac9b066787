"""The contract of every storage: inherit, and give the fixtures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from delta_pyds.errors import FileNotFoundInStorageError, StorageError
from delta_pyds.storage.base import Storage

# what object stores allow in names and path handling likes to mangle
ODD_NAMES = ["a b.json", "c%20d", "e#f?g=1", "p=ü", "[x]*{y}", "it's", "a:b", "~tilde", "p=%2F"]

Put = Callable[[str, bytes], None]


class ReadingContract:
    """Subclasses define the fixtures ``storage``, ``root`` (an empty place) and ``put`` (writes past the storage)."""

    def names(self, storage: Storage, directory: str, start: str) -> list[str]:
        return [status.name for status in storage.list_from(directory, start) if status.regular]

    def test_lists_from_a_name_in_code_point_order(self, storage: Storage, root: str, put: Put) -> None:
        names = ["10.json", "9.json", "Z.json", "_last", "a.json", "é.json", "09.json", ".tmp"]
        for name in names:
            put(f"{root}/{name}", b"x")
        assert self.names(storage, root, "") == sorted(names)
        assert self.names(storage, root, "10.json") == ["10.json", "9.json", "Z.json", "_last", "a.json", "é.json"]
        assert self.names(storage, root, "a") == ["a.json", "é.json"]
        assert self.names(storage, root, "\U0010ffff") == []

    def test_lists_as_regular_files_only_and_not_below(self, storage: Storage, root: str, put: Put) -> None:
        put(f"{root}/1.json", b"x")
        put(f"{root}/2/3.json", b"x")
        assert self.names(storage, root, "") == ["1.json"]

    def test_a_listing_gives_full_paths_that_can_be_read(self, storage: Storage, root: str, put: Put) -> None:
        put(f"{root}/1.json", b"hello")
        [status] = storage.list_from(root, "")
        assert (status.path, status.size_bytes) == (f"{root}/1.json", 5)
        assert storage.read(status.path) == b"hello"
        assert storage.status(status.path) == status

    def test_a_listing_sees_files_that_came_since_the_last_one(self, storage: Storage, root: str, put: Put) -> None:
        put(f"{root}/1.json", b"x")
        assert self.names(storage, root, "") == ["1.json"]
        put(f"{root}/2.json", b"x")
        assert self.names(storage, root, "") == ["1.json", "2.json"]

    def test_listing_a_missing_directory_fails_at_the_call(self, storage: Storage, root: str, put: Put) -> None:
        put(f"{root}/file", b"x")
        for missing in ("nowhere", "file"):
            with pytest.raises(FileNotFoundInStorageError) as caught:
                storage.list_from(f"{root}/{missing}", "")
            assert caught.value.parameters["path"] == f"{root}/{missing}"

    def test_modification_times_are_milliseconds_of_now(self, storage: Storage, root: str, put: Put) -> None:
        import time

        put(f"{root}/1.json", b"x")
        [status] = storage.list_from(root, "")
        assert abs(status.modification_time_ms - time.time() * 1000) < 60_000

    def test_a_directory_shows_its_names_and_what_they_are(self, storage: Storage, root: str, put: Put) -> None:
        for name in ("1.json", "p=a%20b/x", ".hidden", "d/e/f"):
            put(f"{root}/{name}", b"xy")
        found = {entry.name: (entry.kind, entry.size_bytes) for entry in storage.list_directory(root)}
        assert {name: kind for name, (kind, _) in found.items()} == {
            "1.json": "file",
            ".hidden": "file",
            "p=a%20b": "directory",
            "d": "directory",
        }
        assert found["1.json"][1] == 2
        with pytest.raises(FileNotFoundInStorageError):
            list(storage.list_directory(f"{root}/nowhere"))

    def test_a_directory_that_holds_something_stays(self, storage: Storage, root: str, put: Put) -> None:
        put(f"{root}/d/x", b"x")
        assert not storage.delete_empty_directory(f"{root}/d", below=root)
        assert storage.exists(f"{root}/d/x")
        with pytest.raises(StorageError):
            storage.delete_empty_directory(f"{root}/../other", below=root)

    def test_reads_ranges_short_at_the_end(self, storage: Storage, root: str, put: Put) -> None:
        put(f"{root}/f", b"0123456789")
        assert storage.read(f"{root}/f") == b"0123456789"
        assert storage.read(f"{root}/f", 3) == b"3456789"
        assert storage.read(f"{root}/f", 3, 4) == b"3456"
        assert storage.read(f"{root}/f", length=2) == b"01"
        assert storage.read(f"{root}/f", 8, 100) == b"89"
        assert storage.read(f"{root}/f", 0, 0) == b""

    def test_reads_an_empty_file(self, storage: Storage, root: str, put: Put) -> None:
        put(f"{root}/f", b"")
        assert storage.read(f"{root}/f") == b""
        assert storage.status(f"{root}/f").size_bytes == 0

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_names_are_literal(self, storage: Storage, root: str, put: Put, name: str) -> None:
        put(f"{root}/{name}", b"x")
        assert storage.read(f"{root}/{name}") == b"x"
        assert storage.exists(f"{root}/{name}")
        assert storage.status(f"{root}/{name}").path == f"{root}/{name}"
        assert self.names(storage, root, "") == [name]

    @pytest.fixture
    def missing(self) -> tuple[str, ...]:
        return ("nothing", "directory/file/below")

    def test_what_is_missing_is_named(self, storage: Storage, root: str, put: Put, missing: tuple[str, ...]) -> None:
        put(f"{root}/directory/file", b"x")
        for path in (f"{root}/{name}" for name in missing):
            assert not storage.exists(path)
            for call in (storage.read, storage.status):
                with pytest.raises(FileNotFoundInStorageError) as caught:
                    call(path)
                assert caught.value.parameters["path"] == path
        assert not storage.exists(f"{root}/directory")

    def test_parquet_can_be_read_from_the_source(self, storage: Storage, root: str, put: Put) -> None:
        import io

        import pyarrow as pa
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        table = pa.table({"a": list(range(1000)), "b": [str(i) for i in range(1000)]})
        pq.write_table(table, buffer, row_group_size=100)
        put(f"{root}/x y%20.parquet", buffer.getvalue())
        with pq.ParquetFile(storage.parquet_source(f"{root}/x y%20.parquet")) as file:
            assert file.read() == table

    def test_delete_removes_and_forgives_a_missing_file(self, storage: Storage, root: str, put: Put) -> None:
        put(f"{root}/f", b"x")
        storage.delete(f"{root}/f", below=root)
        assert not storage.exists(f"{root}/f")
        storage.delete(f"{root}/f", below=root)

    def test_many_files_are_deleted_and_missing_ones_forgiven(self, storage: Storage, root: str, put: Put) -> None:
        names = [*ODD_NAMES, "p=1/x y%20.parquet", "plain"]
        for name in [*names, "stays"]:
            put(f"{root}/{name}", b"x")
        paths = [f"{root}/{name}" for name in [*names, "never was"]]
        assert storage.delete_all(paths, below=root) == {}
        assert not any(storage.exists(path) for path in paths)
        assert storage.exists(f"{root}/stays")
        assert storage.delete_all([], below=root) == {}
        other = f"{root}/../stays"
        with pytest.raises(StorageError, match="was not deleted"):
            raise storage.delete_all([f"{root}/stays/", other], below=root)[other]


class WritingContract(ReadingContract):
    """For storages with a put-if-absent."""

    def test_put_creates_once(self, storage: Storage, root: str) -> None:
        from delta_pyds.errors import FileExistsInStorageError

        storage.put_if_absent(f"{root}/log/1.json", b"first")
        with pytest.raises(FileExistsInStorageError) as caught:
            storage.put_if_absent(f"{root}/log/1.json", b"second")
        assert caught.value.parameters["path"] == f"{root}/log/1.json"
        assert caught.value.code == "DELTA_FILE_ALREADY_EXISTS"
        assert storage.read(f"{root}/log/1.json") == b"first"
        assert self.names(storage, f"{root}/log", "") == ["1.json"]

    def test_of_many_racing_writers_one_wins(self, storage: Storage, root: str) -> None:
        from concurrent.futures import ThreadPoolExecutor

        from delta_pyds.errors import FileExistsInStorageError

        def attempt(number: int) -> int | None:
            try:
                storage.put_if_absent(f"{root}/log/1.json", str(number).encode() * 1000)
            except FileExistsInStorageError:
                return None
            return number

        with ThreadPoolExecutor(8) as pool:
            won = [number for number in pool.map(attempt, range(10, 74)) if number is not None]
        assert len(won) == 1
        assert storage.read(f"{root}/log/1.json") == str(won[0]).encode() * 1000

    def test_it_can_be_asked_before_and_that_leaves_nothing(self, storage: Storage, root: str) -> None:
        storage.require_put_if_absent(root)
        storage.put_if_absent(f"{root}/1.json", b"x")
        assert self.names(storage, root, "") == ["1.json"]
