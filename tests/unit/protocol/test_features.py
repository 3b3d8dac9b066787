from __future__ import annotations

import pytest

from delta_pyds.protocol.actions import Protocol
from delta_pyds.protocol.features import (
    FEATURES,
    READABLE_FEATURES,
    implied_features,
    lowest_protocol,
    supported_features,
    supports,
    supports_for_readers,
    with_requirements,
)

V2 = {"appendOnly", "invariants"}
V3 = V2 | {"checkConstraints"}
V4 = V3 | {"changeDataFeed", "generatedColumns"}
V5 = V4 | {"columnMapping"}
V6 = V5 | {"identityColumns"}


@pytest.mark.parametrize(
    ("versions", "implied"),
    [
        ((1, 1), set()),
        ((1, 2), V2),
        ((1, 3), V3),
        ((1, 4), V4),
        ((1, 5), V4),  # readers of version 1 know no column mapping
        ((2, 5), V5),
        ((2, 6), V6),
        ((1, 6), V6 - {"columnMapping"}),
        ((1, 7), set()),
        ((2, 7), set()),
        ((3, 7), set()),
    ],
)
def test_old_versions_imply_features(versions: tuple[int, int], implied: set[str]) -> None:
    assert implied_features(*versions) == implied


def test_listed_features_are_all_that_a_protocol_with_lists_supports() -> None:
    assert supported_features(Protocol(3, 7, ["deletionVectors"], ["deletionVectors", "odd"])) == {
        "deletionVectors",
        "odd",
    }
    assert supported_features(Protocol(2, 7, None, ["columnMapping"])) == {"columnMapping"}


@pytest.mark.parametrize(
    ("features", "protocol"),
    [
        (set(), Protocol(1, 1)),
        (V2, Protocol(1, 2)),
        (V3, Protocol(1, 3)),
        (V4, Protocol(1, 4)),
        (V5, Protocol(2, 5)),
        (V6, Protocol(2, 6)),
        (V2 | {"changeDataFeed"}, Protocol(1, 7, None, ["appendOnly", "changeDataFeed", "invariants"])),
        (V2 | {"columnMapping"}, Protocol(2, 7, None, ["appendOnly", "columnMapping", "invariants"])),
        (V2 | {"domainMetadata"}, Protocol(1, 7, None, ["appendOnly", "domainMetadata", "invariants"])),
        (
            V2 | {"columnMapping", "deletionVectors"},
            Protocol(
                3,
                7,
                ["columnMapping", "deletionVectors"],
                ["appendOnly", "columnMapping", "deletionVectors", "invariants"],
            ),
        ),
    ],
)
def test_the_weakest_protocol_supports_exactly_the_features(features: set[str], protocol: Protocol) -> None:
    assert lowest_protocol(features) == protocol
    assert supported_features(protocol) == features


def test_no_version_falls_below_the_least_protocol() -> None:
    least = Protocol(3, 7, ["odd"], ["appendOnly", "invariants", "odd"])
    assert lowest_protocol(V3 | {"odd"}, least=least) == Protocol(
        3, 7, ["odd"], ["appendOnly", "checkConstraints", "invariants", "odd"]
    )
    assert lowest_protocol(V3, least=Protocol(2, 2)) == Protocol(2, 3)


def test_requirements_are_followed_to_their_end() -> None:
    assert with_requirements(["icebergCompatV3"]) == {
        "icebergCompatV3",
        "columnMapping",
        "rowTracking",
        "domainMetadata",
    }


def test_every_requirement_is_a_known_feature_and_reader_features_are_listed_as_such() -> None:
    for feature in FEATURES.values():
        assert set(feature.requires) <= FEATURES.keys()
        assert feature.instead is None or feature.instead in FEATURES
        # a feature that readers must know of cannot be written without being read
        assert feature.readable or not feature.writable
    assert {"columnMapping", "deletionVectors", "v2Checkpoint", "timestampNtz"} <= READABLE_FEATURES


@pytest.mark.parametrize(
    ("protocol", "feature", "supported"),
    [
        (Protocol(1, 2), "appendOnly", True),
        (Protocol(1, 1), "appendOnly", False),
        (Protocol(2, 5), "columnMapping", True),
        (Protocol(1, 7, None, ["rowTracking"]), "rowTracking", True),
        (Protocol(1, 7, None, []), "appendOnly", False),
        (Protocol(1, 6), "rowTracking", False),
        (Protocol(3, 7, ["deletionVectors"], ["deletionVectors"]), "deletionVectors", True),
    ],
)
def test_a_feature_is_supported_if_it_is_listed_or_implied(protocol: Protocol, feature: str, supported: bool) -> None:
    assert supports(protocol, feature) is supported


@pytest.mark.parametrize(
    ("readers", "writers", "supported"),
    [
        (["v2Checkpoint"], ["v2Checkpoint"], True),
        (None, ["v2Checkpoint"], False),
        (["v2Checkpoint"], None, False),
        ([], [], False),
    ],
)
def test_readers_know_of_a_feature_that_both_lists_have(
    readers: list[str] | None, writers: list[str] | None, supported: bool
) -> None:
    assert supports_for_readers(Protocol(3, 7, readers, writers), "v2Checkpoint") is supported
