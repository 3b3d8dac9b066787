"""CREATE and REPLACE TABLE without a query, at a path or by a name.

Invariant: errors in columns, expressions, properties and names are raised before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import SparkSession

from delta_pyds.catalog.address import TableAddress, locate, locate_or_reserve
from delta_pyds.commands.definition.create import CreateMode, CreateRequest, create_table, existing_table
from delta_pyds.errors import OptionError, UserError
from delta_pyds.protocol.properties import CONSTRAINT_PREFIX
from delta_pyds.protocol.schema import CURRENT_DEFAULT, StructField, StructType
from delta_pyds.redaction import Concealing
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names.locations import (
    Location,
    is_same_table,
    location_of,
    no_table_to_replace,
    refuse_existing,
    settle,
)
from delta_pyds.spark.catalog_names.opening import OpenTable, open_name
from delta_pyds.spark.registration import register
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.table_commands.expression_checks import check_condition, check_default, check_generated
from delta_pyds.spark.table_commands.opening import open_path
from delta_pyds.spark.table_commands.settings import default_properties, user_metadata
from delta_pyds.storage.table_path import absolute_table_path
from delta_pyds.table.definition.schema_paths import one_path
from delta_pyds.table.definition.schema_rules import check_duplicates


@dataclass(frozen=True, repr=False)
class NewTable(Concealing):
    """The table to create.

    Its location comes from ``path``, given as ``delta.`/data/events```; from ``location``; from ``name``, in Spark's
    catalog, with or without a location; or from ``managed``, a name and the catalog that manages the table.
    ``partition_columns``, ``clustering_columns``: names, the latter with dots.
    """

    mode: CreateMode
    path: str | None = None
    location: str | None = None
    name: str | None = None
    managed: tuple[str, str] | None = None
    columns: tuple[StructField, ...] = ()
    partition_columns: tuple[str, ...] = ()
    clustering_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict)


def create(spark: SparkSession, new: NewTable) -> OpenTable:
    """Create the table; for an existing table, do what the mode says.

    Raises: as ``DeltaTableBuilder.execute``.
    """
    if new.name is None:
        return OpenTable(_create_at_path(spark, new))
    register(spark)
    location = location_of(spark, new.name, new.location, stays=new.mode == "create_if_not_exists")
    if location.table is not None:
        refuse_existing(new.mode, new.name)
    elif new.mode == "replace":
        raise no_table_to_replace(new.name)
    if location.table is None or new.mode != "create_if_not_exists":
        if location.table is not None or not _is_there(spark, new, location):
            _create_at_path(spark, replace(new, name=None, location=location.path))
        settle(spark, location, new.storage_options)
    return open_name(spark, new.name, storage_options=new.storage_options)


def _create_at_path(spark: SparkSession, new: NewTable) -> TableHandle:
    request = _request(spark, new)
    there = existing_table(request)
    if there is None or request.mode != "create_if_not_exists":
        _check_expressions(spark, request.columns, new.properties)
    try:
        create_table(request)
    except UserError as error:
        if new.managed is None or new.mode == "create" or error.code != "TABLE_OR_VIEW_ALREADY_EXISTS":
            raise
        # another writer gave the name to a table after the lookup: now the mode applies to that table
        create_table(_request(spark, new))
    return open_path(spark, request.table_root, storage_options=_address(spark, new).storage_options)


def _is_there(spark: SparkSession, new: NewTable, location: Location) -> bool:
    """Whether the table that will get the name exists at its location. Raises: UserError for a different table."""
    if new.mode == "create_or_replace":
        return False
    root = absolute_table_path(location.path, remote=is_remote(spark))
    clustering = tuple(map(one_path, new.clustering_columns))
    columns = StructType(new.columns)
    return is_same_table(root, new.storage_options, columns, new.partition_columns, clustering, new.properties)


def _address(spark: SparkSession, new: NewTable) -> TableAddress:
    """The location of the existing or future table."""
    if new.managed is not None:
        if new.path is not None or new.location is not None:
            raise UserError(
                f"the catalog chooses the location of the table {new.managed[0]}. Omit the location.",
                code="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
            )
        find = locate if new.mode == "replace" else locate_or_reserve
        return find(table=new.managed[0], catalog=new.managed[1], storage_options=new.storage_options)
    given = new.location if new.location is not None else new.path
    if given is None:
        raise OptionError(
            "the table has no location: call location('/data/events'), or tableName('delta.`/data/events`').",
            code="DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
            option="location",
        )
    if new.path is not None and new.location is not None and new.path != new.location:
        raise UserError(
            f"the name gives the path '{new.path}', but the location is '{new.location}'. Give only one of them.",
            code="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
        )
    return TableAddress(absolute_table_path(given, remote=is_remote(spark)), new.storage_options)


def _request(spark: SparkSession, new: NewTable) -> CreateRequest:
    address = _address(spark, new)
    return CreateRequest(
        address.table_root,
        new.mode,
        StructType(new.columns),
        new.partition_columns,
        new.clustering_columns,
        {**default_properties(spark, new.properties), **new.properties},
        new.comment,
        user_metadata(spark),
        address.storage_options,
    )


def _check_expressions(spark: SparkSession, columns: StructType, properties: Mapping[str, str]) -> None:
    check_duplicates(columns, "METADATA_UPDATE")
    check_generated(spark, columns)
    for f in columns:
        if CURRENT_DEFAULT in f.metadata:
            check_default(spark, f)
    for key, text in properties.items():
        if key.lower().startswith(CONSTRAINT_PREFIX):
            check_condition(spark, columns, key[len(CONSTRAINT_PREFIX) :], text)
