"""Keys of paths as Arrow columns, so that a million files do not become a million Python objects.

Protocol: "Action Reconciliation", "Add File and Remove File".
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.protocol.paths import NON_CANONICAL_PATH, path_key

# a placeholder for a plain file name, which is its own key, while the key of its directory is computed
_NAME = "x"
_NO_NAME = r"^\.{0,2}$"
# The length of a path's end that distinguishes most files: names end in a random id and a suffix.
_MOST_ENDING = 32
_ESCAPE_BYTES = len("%25")
_ENDS_OF_NO_NAME = ("/", "/.", "/..")
_LONGEST_ESCAPED_END = len("%2F..")


def path_keys(paths: pa.StringArray) -> pa.StringArray:
    """``protocol.paths.path_key`` of each path; nulls stay.

    Most paths are their own keys. Most others have their escapes in a directory that many files share, so for plain
    file names each directory is computed only once.
    """
    return convert_odd_paths(paths, NON_CANONICAL_PATH, path_key)


def convert_odd_paths(
    paths: pa.StringArray, odd: str, convert: Callable[[str], str], *, plain_prefix: str = ""
) -> pa.StringArray:
    """Each path that matches the pattern ``odd``, converted; ``plain_prefix`` before each other path. Nulls stay.

    ``convert`` keeps a file name that does not match ``odd``. So each directory of such names is converted only once.
    """
    is_odd = pc.match_substring_regex(paths, odd)
    others = pc.binary_join_element_wise(plain_prefix, paths, "") if plain_prefix else paths
    if not is_odd.true_count:
        return others
    return pc.replace_with_mask(others, is_odd, _converted(paths.filter(is_odd), odd, convert))


class KnownPaths:
    """Finds a few given files in columns of many paths.

    Keys are computed only for paths that end like one of the given keys, or that may decode to such an end.
    """

    def __init__(self, keys: Collection[str]) -> None:
        texts = [key.encode() for key in keys]
        names = (len(text) - text.rfind(b"/") - 1 for text in texts)
        self._length = min(_MOST_ENDING, min(names, default=0))
        self._endings = pa.array({text[len(text) - self._length :] for text in texts}, pa.binary())
        self._keys = pa.array(keys, pa.string())

    def positions(self, paths: pa.StringArray) -> pa.UInt64Array:
        """The positions of the given files in the column."""
        if not len(self._keys):
            return pa.array([], pa.uint64())
        candidates = pc.indices_nonzero(self._may_match(paths))
        if not len(candidates):
            return candidates
        return candidates.filter(pc.is_in(path_keys(paths.take(candidates)), value_set=self._keys))

    def _may_match(self, paths: pa.StringArray) -> pa.BooleanArray:
        raw = paths.cast(pa.binary())
        if not self._length:
            return raw.is_valid()
        found = pc.is_in(pc.binary_slice(raw, -self._length, None), value_set=self._endings)
        # an escape that starts before the compared bytes may end within them, and be the slash of an end of no name
        looked_at = pc.binary_slice(raw, -max(self._length + _ESCAPE_BYTES - 1, _LONGEST_ESCAPED_END), None)
        data = looked_at.buffers()[2]
        if data is not None and b"%" in data.to_pybytes():
            found = pc.or_(found, pc.match_substring(looked_at, "%"))
        for end in _ENDS_OF_NO_NAME:
            found = pc.or_(found, pc.ends_with(raw, end))
        return found


def _converted(paths: pa.StringArray, odd: str, convert: Callable[[str], str]) -> pa.StringArray:
    parts = pc.split_pattern(paths, "/", max_splits=1, reverse=True)
    shares = pc.equal(pc.list_value_length(parts), 2)
    parts = parts.filter(shares)
    directories, names = pc.list_element(parts, 0), pc.list_element(parts, 1)
    # two slashes may be followed by a host
    plain = pc.invert(pc.or_(pc.match_substring_regex(names, f"{odd}|{_NO_NAME}"), pc.ends_with(directories, "/")))
    shares = pc.replace_with_mask(shares, shares, plain)
    directories, names = directories.filter(plain).dictionary_encode(), names.filter(plain)
    found = [convert(f"{directory}/{_NAME}").removesuffix(_NAME) for directory in directories.dictionary.to_pylist()]
    joined = pc.binary_join_element_wise(pa.array(found, pa.string()).take(directories.indices), names, "")
    alone = paths.filter(pc.invert(shares)).to_pylist()
    if not alone:
        return joined
    whole = pc.replace_with_mask(paths, shares, joined)
    return pc.replace_with_mask(whole, pc.invert(shares), pa.array(map(convert, alone), pa.string()))
