"""Functions of arrays, maps and structs: their types by Spark's rules."""

from __future__ import annotations

from delta_pyds.errors import ColumnNotFoundError, ExpressionError
from delta_pyds.expr.coercion import branch_type
from delta_pyds.expr.functions.session_context import (
    Registry,
    SessionContext,
    constant_argument,
    expect_count,
    refuse_argument,
)
from delta_pyds.expr.nodes import Column, Expr, Literal, to_sql, type_of
from delta_pyds.expr.types import is_integral, is_total_cast
from delta_pyds.protocol.schema import (
    BOOLEAN,
    COLLATIONS,
    INTEGER,
    LONG,
    STRING,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)

CONTAINER_FUNCTIONS = Registry()
_function = CONTAINER_FUNCTIONS.function


@_function("size", "cardinality", "array_size", counts=(1,))
def size(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    """The number of elements. Without ANSI rules, ``size`` and ``cardinality`` of null are -1."""
    kinds = (ArrayType,) if name == "array_size" else (ArrayType, MapType)
    if not isinstance(type_of(args[0]), kinds):
        raise refuse_argument(name, args[0], "an array or a map")
    return context.call("size", args, INTEGER, -1 if name != "array_size" and not context.ansi else "null")


@_function("[]", "element_at", counts=(2,))
def element(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    """``array[i]`` counts from 0; ``element_at`` from 1, or from the end for negative indexes."""
    container, index = args
    data_type = type_of(container)
    if isinstance(data_type, MapType):
        key = data_type.key_type
        if type_of(index) != key and not is_total_cast(type_of(index), key):
            raise refuse_argument("map[key]", index, "a key of the map's own type")
        return context.call("map_value", (container, context.cast(index, key)), data_type.value_type)
    if isinstance(data_type, ArrayType):
        if not is_integral(type_of(index)):
            raise refuse_argument("array[index]", index, "a whole number")
        if name == "element_at" and type_of(index) == LONG:
            raise refuse_argument(name, index, "an index of at most 32 bits")
        function = "array_item" if name == "[]" else name
        return context.call(function, (container, context.cast(index, LONG)), data_type.element_type)
    if isinstance(data_type, StructType) and name == "[]" and isinstance(index, Literal) and type_of(index) == STRING:
        return field(context, ".", args)
    raise refuse_argument(name, container, "an array or a map")


@_function(".")
def field(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    parent, wanted = args
    data_type = type_of(parent)
    text = str(constant_argument(name, wanted, "field"))
    if not isinstance(data_type, StructType):
        raise ExpressionError(f"'{to_sql(parent)}' is not a struct and has no field '{text}'.", construct=f".{text}")
    found = data_type.find(text)
    if found is None:
        raise ColumnNotFoundError(
            f"'{to_sql(parent)}' has no field '{text}'. It has: {', '.join(data_type.names) or 'nothing'}.",
            column=text,
        )
    if isinstance(parent, Column):
        return Column((*parent.path, found.name), found.data_type, COLLATIONS in found.metadata)
    return context.call(".", (parent,), found.data_type, found.name)


@_function("array")
def array(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    if not args:
        return context.call(name, (), ArrayType(VOID))
    target = branch_type(args, ansi=context.ansi, what="ARRAY")
    return context.call(name, [context.cast(arg, target) for arg in args], ArrayType(target))


@_function("map")
def map_(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    if len(args) % 2:
        expect_count(name, args, len(args) + 1)
    if not args:
        # a map of Arrow cannot have the type null for its keys, and this map has no keys
        return context.call(name, (), MapType(STRING, VOID))
    keys, values = args[::2], args[1::2]
    if not all(isinstance(key, Literal) and key.value is not None for key in keys):
        raise ExpressionError("map is supported with constant keys only.", construct="map")
    key_type = branch_type(keys, ansi=context.ansi, what="MAP")
    value_type = branch_type(values, ansi=context.ansi, what="MAP")
    cast = [context.cast(key, key_type) for key in keys]
    known = [key.value for key in cast if isinstance(key, Literal)]
    if len(known) != len(cast) or len(set(known)) != len(known):
        raise ExpressionError("the keys of a map are not constant or occur twice.", code="DUPLICATED_MAP_KEY")
    mixed = [part for pair in zip(cast, (context.cast(v, value_type) for v in values), strict=True) for part in pair]
    return context.call(name, mixed, MapType(key_type, value_type))


@_function("named_struct")
def named_struct(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    if len(args) % 2 or not args:
        expect_count(name, args, len(args) + 1)
    names = [constant_argument(name, arg, "name of a field") for arg in args[::2]]
    if not all(isinstance(n, str) for n in names):
        raise ExpressionError("named_struct needs texts as names of fields.", construct=name)
    return _struct(context, [str(n) for n in names], args[1::2])


@_function("struct")
def struct(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    if not args:
        expect_count(name, args, 1)
    names = [arg.path[-1] if isinstance(arg, Column) else f"col{n + 1}" for n, arg in enumerate(args)]
    return _struct(context, names, args)


def _struct(context: SessionContext, names: list[str], values: tuple[Expr, ...]) -> Expr:
    fields = tuple(StructField(n, type_of(value)) for n, value in zip(names, values, strict=True))
    return context.call("named_struct", values, StructType(fields), *names)


@_function("array_contains", counts=(2,))
def array_contains(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    data_type = type_of(args[0])
    if not isinstance(data_type, ArrayType) or not isinstance(args[1], Literal):
        raise ExpressionError("array_contains needs an array and a constant.", construct=name)
    element_type: DataType = data_type.element_type
    if type_of(args[1]) != element_type and not is_total_cast(type_of(args[1]), element_type):
        raise refuse_argument(name, args[1], "a value of the array's own type")
    return context.call(name, (args[0], context.cast(args[1], element_type)), BOOLEAN)
