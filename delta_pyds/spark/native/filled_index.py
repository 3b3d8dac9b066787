"""Many files put into an index of Spark, in the JVM of a classic session.

Invariant: Spark sees exactly these files, or the index is not used. Spark's own sum of their sizes is compared.

For the log of ``file_index``, Spark parses JSON: 12 µs of CPU for each file, and 90 µs in a new JVM. Here the JVM
itself calls the public constructors of Hadoop and Scala for each file. These calls are composed of method handles, so
Python makes the same number of calls for any number of files.

The index is Spark's internal class. It is made from a log without files, and its map of files can be filled after
that. Another Spark may have no such map. Then the caller writes all files to the log.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_pyds.spark.native.file_index import BLOCK_SIZE, PREFIX, NoIndexError, text_chunks, write_chunks
from delta_pyds.spark.native.files import NativeFiles

# The calls to Spark's driver take as long as the JSON of so many files.
MIN_FILES = 2_000
_NUMBERS = ("size", "modificationTime")
_OBJECT, _STRING = "Ljava/lang/Object;", "Ljava/lang/String;"
_URI, _PAIR = "java.net.URI", "scala.Tuple2"
_STATUS, _PATH = "org.apache.hadoop.fs.FileStatus", "org.apache.hadoop.fs.Path"
_PERMISSION = "org.apache.hadoop.fs.permission.FsPermission"


def fill(spark: SparkSession, relation: Any, files: NativeFiles, chosen: Sequence[int]) -> None:
    """Put the files at the positions ``chosen`` into the index of the JVM's relation, which has no files.

    Raises: NoIndexError if the index does not have exactly these files then.
    """
    from py4j.protocol import Py4JError  # the client of Spark Connect has no py4j

    session: Any = spark
    rows = files.rows_at(chosen)
    try:
        index = relation.location()
        with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as directory:
            names, numbers = Path(directory, "names"), Path(directory, "numbers")
            write_chunks(names, text_chunks(rows, lambda batch: (batch.column("uri"), "\n")))
            write_chunks(numbers, (_native_bytes(chunk) for name in _NUMBERS for chunk in rows.column(name).chunks))
            entries = _Composer(session.sparkContext._gateway, index).entries(names, numbers, rows.num_rows)
            index.leafFiles().addAll(entries)
        found = index.leafFiles().size(), index.sizeInBytes()
    # py4j takes an unknown name for a package, and a call of it is a TypeError
    except (OSError, TypeError, Py4JError, PySparkException) as error:
        raise NoIndexError(f"Spark's index of files cannot be filled: {error}") from error
    if found != (rows.num_rows, pc.sum(rows.column("size")).as_py()):
        raise NoIndexError("Spark's index does not have the files that were put into it")


def _native_bytes(numbers: pa.Int64Array) -> pa.Buffer:
    assert not numbers.null_count
    width = numbers.type.byte_width
    return numbers.buffers()[1].slice(numbers.offset * width, len(numbers) * width)


class _Composer:
    """Composes functions in the JVM."""

    def __init__(self, gateway: Any, index: Any) -> None:
        self._gateway = gateway
        self._java = gateway.jvm.java
        self._scala = gateway.jvm.scala
        self._handles = self._java.lang.invoke.MethodHandles
        self._public = self._handles.publicLookup()
        self._loader = index.getClass().getClassLoader()

    def entries(self, names: Path, numbers: Path, count: int) -> Any:
        """An iterator of Scala: for each file its path and its status.

        ``names``: the URIs, a line each. ``numbers``: first all sizes, then all times of modification.
        """
        entry = self._handles.filterReturnValue(self._status(names, numbers, count), self._with_path())
        function = self._java.lang.invoke.MethodHandleProxies.asInterfaceInstance(
            self._class("java.util.function.IntFunction"), entry
        )
        made = self._java.util.stream.IntStream.range(0, count).mapToObj(function).iterator()
        return self._scala.jdk.javaapi.CollectionConverters.asScala(made)

    def _status(self, names: Path, numbers: Path, count: int) -> Any:
        """A function of a position: the status of the file there."""
        handles, jvm = self._handles, self._gateway.jvm
        permission = jvm.org.apache.hadoop.fs.permission.FsPermission.getFileDefault()
        texts = f"{_inside(_PERMISSION)}{_STRING}{_STRING}"
        # length, directory or not, replication, block size, times of modification and access
        make = self._constructor(_STATUS, f"JZIJJJ{texts}{_inside(_PATH)}")
        make = make.asType(self._type(f"(JZIIJI{texts}{_inside(_PATH)}){_inside(_STATUS)}"))
        # files share all that is equal
        make = handles.insertArguments(make, 5, self._objects(0, permission, "", ""))
        make = handles.insertArguments(make, 1, self._objects(False, 1, BLOCK_SIZE))
        numbers_at = self._longs(numbers, 2 * count)
        parts = [numbers_at(0, count), numbers_at(count, count), self._path(names)]
        make = handles.filterArguments(make, 0, self._array(self._java.lang.invoke.MethodHandle, parts))
        # the position is an argument of each part
        return handles.permuteArguments(
            make, self._type(f"(I){_inside(_STATUS)}"), self._array(jvm.int, [0 for _ in parts])
        )

    def _path(self, names: Path) -> Any:
        """A function of a position: the path of the file there."""
        lines = self._java.nio.file.Files.readAllLines(self._java.io.File(str(names)).toPath())
        line = self._method("java.util.List", "get", f"(I){_OBJECT}").bindTo(lines)
        line = line.asType(self._type(f"(I){_STRING}"))
        uri = self._handles.filterReturnValue(line, self._constructor(_URI, _STRING))
        return self._handles.filterReturnValue(uri, self._constructor(_PATH, _inside(_URI)))

    def _longs(self, file: Path, count: int) -> Any:
        """A function of a start and a length, which returns a function of a position: the number there."""
        buffer = self._java.nio.ByteBuffer.allocate(count * pa.int64().byte_width)
        stream = self._java.io.FileInputStream(str(file))
        try:
            channel = stream.getChannel()
            while buffer.hasRemaining() and channel.read(buffer) >= 0:
                pass
        finally:
            stream.close()
        longs = buffer.flip().order(self._java.nio.ByteOrder.nativeOrder()).asLongBuffer()
        get = self._method("java.nio.LongBuffer", "get", "(I)J")
        return lambda start, length: get.bindTo(longs.slice(start, length))

    def _with_path(self) -> Any:
        """A function of a status: a pair of its path and the status."""
        pair = self._constructor(_PAIR, _OBJECT + _OBJECT)
        pair = pair.asType(self._type(f"({_OBJECT}{_inside(_STATUS)}){_OBJECT}"))
        path = self._method(_STATUS, "getPath", f"(){_inside(_PATH)}")
        path = path.asType(self._type(f"({_inside(_STATUS)}){_OBJECT}"))
        return self._handles.foldArguments(pair, path)

    # --- names of Java

    def _class(self, name: str) -> Any:
        return self._java.lang.Class.forName(name, True, self._loader)

    def _type(self, descriptor: str) -> Any:
        return self._java.lang.invoke.MethodType.fromMethodDescriptorString(descriptor, self._loader)

    def _constructor(self, name: str, arguments: str) -> Any:
        return self._public.findConstructor(self._class(name), self._type(f"({arguments})V"))

    def _method(self, name: str, method: str, descriptor: str) -> Any:
        return self._public.findVirtual(self._class(name), method, self._type(descriptor))

    def _objects(self, *items: Any) -> Any:
        return self._array(self._java.lang.Object, items)

    def _array(self, of: Any, items: Sequence[Any]) -> Any:
        array = self._gateway.new_array(of, len(items))
        for n, item in enumerate(items):
            array[n] = item
        return array


def _inside(name: str) -> str:
    """The name of a class inside the descriptor of a method."""
    return f"L{name.replace('.', '/')};"
