"""Keys of paths as Arrow columns: a million files are a million rows here too.

Protocol: "Action Reconciliation", "Add File and Remove File".
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.protocol.paths import ODD_PATH, path_key

# a name that is its own key: it stands for every such name while the key of their directory is made
_NAME = "x"
_ODD_NAME = r"%|^\.{0,2}$"


def path_keys(paths: pa.StringArray) -> pa.StringArray:
    """``protocol.paths.path_key`` of each, nulls as they are.

    Most paths are their own keys. Of the others most have their escapes in a directory, which many files share: of
    files with plain names each directory is looked at once.
    """
    odd = pc.match_substring_regex(paths, ODD_PATH)
    if not odd.true_count:
        return paths
    return pc.replace_with_mask(paths, odd, _of_odd(paths.filter(odd)))


def _of_odd(paths: pa.StringArray) -> pa.StringArray:
    parts = pc.split_pattern(paths, "/", max_splits=1, reverse=True)
    shares = pc.equal(pc.list_value_length(parts), 2)
    parts = parts.filter(shares)
    directories, names = pc.list_element(parts, 0), pc.list_element(parts, 1)
    # behind two slashes may stand a host
    plain = pc.invert(pc.or_(pc.match_substring_regex(names, _ODD_NAME), pc.ends_with(directories, "/")))
    shares = pc.replace_with_mask(shares, shares, plain)
    directories, names = directories.filter(plain).dictionary_encode(), names.filter(plain)
    keys = [path_key(f"{directory}/{_NAME}").removesuffix(_NAME) for directory in directories.dictionary.to_pylist()]
    found = pc.binary_join_element_wise(pa.array(keys, pa.string()).take(directories.indices), names, "")
    alone = paths.filter(pc.invert(shares)).to_pylist()
    if not alone:
        return found
    whole = pc.replace_with_mask(paths, shares, found)
    return pc.replace_with_mask(whole, pc.invert(shares), pa.array(map(path_key, alone), pa.string()))
