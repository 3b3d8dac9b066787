"""A table's expression is another's text: it computes a value of a row from that row, or it is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession, types

from delta_pyds.errors import ColumnNotFoundError, ExpressionError
from delta_pyds.spark.planning.types import from_spark
from delta_pyds.spark.row_changes.expressions import independent_text
from delta_pyds.spark.row_changes.table_expression import Trial, try_expressions
from delta_pyds.spark.versions import calls_built_in_functions_first
from delta_pyds.table.definition.allowed_functions import ALLOWED_FUNCTIONS
from delta_pyds.table.definition.spark_expressions import spark_expression

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

INSIDE = (
    types.StructType()
    .add("a", types.IntegerType())
    .add("mine", types.IntegerType())
    .add("odd.name", types.StringType())
)
SCHEMA = (
    types.StructType()
    .add("id", types.IntegerType())
    .add("s", types.StringType())
    .add("ts", types.TimestampType())
    .add("st", INSIDE)
    .add("dot.ted", types.IntegerType())
    .add("back`tick", types.IntegerType())
    .add("xs", types.ArrayType(types.IntegerType()))
    .add("v", types.VariantType())
)


REFUSED = {
    # operators, by names that only backticks make names of functions
    "and", "or", "not", "in", "div", "between", "cast",
    # into the JVM; where a row comes from; what the session is; errors in a table's words
    "reflect", "java_method", "try_reflect", "input_file_name", "input_file_block_start", "input_file_block_length",
    "monotonically_increasing_id", "spark_partition_id", "current_catalog", "current_database", "current_path",
    "current_schema", "current_timezone", "version", "assert_true", "raise_error",
    # aggregates, and what makes other rows
    "window", "session_window", "window_time", "json_tuple", "schema_of_variant_agg", "vector_avg", "vector_sum",
    # files by an option; Spark 4.0 has other groups for them
    "from_avro", "to_avro", "schema_of_avro", "from_protobuf", "to_protobuf",
}  # fmt: skip
_REFUSED_GROUPS = ("agg_funcs", "avro_funcs", "generator_funcs", "protobuf_funcs", "window_funcs", "xml_funcs")


@pytest.fixture(scope="module")
def users(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with variables, functions and a view of its user."""
    spark.udf.register("of_python", lambda number: number > 1, "boolean")
    spark.sql("CREATE TEMPORARY FUNCTION of_sql(x INT) RETURNS BOOLEAN RETURN x > 1")
    spark.sql("DECLARE VARIABLE mine INT DEFAULT 5")
    spark.range(3).createOrReplaceTempView("of_user")
    yield spark
    spark.sql("DROP TEMPORARY FUNCTION of_python")
    spark.sql("DROP TEMPORARY FUNCTION of_sql")
    spark.sql("DROP TEMPORARY VARIABLE mine")
    spark.catalog.dropTempView("of_user")


def tried(spark: SparkSession, *texts: str) -> list[str]:
    schema = from_spark(SCHEMA)
    trials = []
    for text in texts:
        spark_expression(text, schema, "the rule of table t")
        trials.append(Trial(text, "the rule of table t", lambda value: value))
    return [found.simpleString() for found in try_expressions(spark, SCHEMA, trials)]


def test_what_computes_a_value_has_sparks_type(users: SparkSession) -> None:
    texts = {
        "id > 0 -- and mine > zz": "boolean",
        "ID + `dot.ted` /* mine */ + `back``tick`": "int",
        "st.mine > 1": "boolean",
        "St.`odd.name` || 'mine'": "string",
        "exists(xs, mine -> mine > 0)": "boolean",
        "aggregate(xs, 0, (mine, x) -> mine + x)": "int",
        "ts > current_timestamp - INTERVAL 1 DAY AND current_date() > DATE'2020-01-01'": "boolean",
        "current_user || user": "string",
        "rand() < id": "boolean",
        "variant_get(v, '$.a', 'int')": "int",
        "CASE WHEN id = 1 THEN extract(YEAR FROM ts) END": "int",
        "trim(BOTH 'x' FROM s) RLIKE 'select' AND id IS DISTINCT FROM 2": "boolean",
        "named_struct('mine', id).mine * 2": "int",
    }

    assert dict(zip(texts, tried(users, *texts), strict=True)) == texts


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "sql", ["mine > 1", "session.mine > 1", "system.session.mine > 1", "`mine` + id", "exists(xs, x -> x > mine)",
            "zz > 0", "_metadata.file_path IS NULL", "of_user.id > 0", "id > 0 OR `not here`", "'`' || foo || '`'"],
)  # fmt: skip
def test_names_are_columns_of_the_table(users: SparkSession, sql: str) -> None:
    with pytest.raises(ColumnNotFoundError, match="the rule of table t") as caught:
        tried(users, "id > 0", sql)
    assert caught.value.parameters["expression"] == sql


@pytest.mark.one_case_in(4)
@pytest.mark.parametrize(
    "sql",
    [
        # what reads other rows, or makes them
        "id > (SELECT max(id) FROM of_user)", "EXISTS (SELECT 1 FROM of_user)", "EXISTS (TABLE of_user)",
        "EXISTS (VALUES 1)", "id IN (WITH t AS (SELECT 1 AS x) SELECT x FROM t)", "count(id) > 0",
        "sum(id) OVER () > 1",
        "row_number() OVER (ORDER BY id) > 0", "explode(xs) > 0", "explode(xs)", "window(ts, '1 day').start < ts",
        "session_window(ts, '1 day').start < ts", "grouping(id) = 1",
        # what calls something of the user, or into the JVM, or reads outside of the row
        "of_python(id)", "of_sql(id)", "`of_python` (id)", "of_python/**/(id)", "spark_catalog.default.of_sql(id)",
        "reflect('java.lang.System', 'getenv', 'HOME') = ''", "JAVA_METHOD('java.lang.Math', 'abs', 1) = '1'",
        "`reflect`('java.lang.Math', 'abs', 1) = '1'", "identifier('reflect')('java.lang.Math', 'abs', 1) = '1'",
        "identifier('id') > 0", "input_file_name() = ''", "s = '${spark.app.name}'", "s = '${env:HOME}'",
        # what is not one expression of known columns
        "*", "struct(*) IS NULL", "st.*", "coalesce(id, *)", "id > 0; DROP TABLE t", "id > 0) OR (id > 0", "id > :p",
        "id > ?", "id >", "nofunction(id)", "",
    ],
)  # fmt: skip
def test_what_does_more_than_compute_is_refused(users: SparkSession, sql: str) -> None:
    with pytest.raises(ExpressionError, match="nothing can be written: the rule of table t"):
        tried(users, sql)


# names that a session can give to a function of its own, and texts that then call it
REPLACED = {"soundex": "soundex(s)", "between": "s BETWEEN 'a' AND 'b'", "extract": "extract(YEAR FROM ts)"}


@pytest.fixture
def replaced(spark: SparkSession) -> SparkSession:
    """A session with functions of its own under names of Spark's. Spark 4.0 cannot drop them again."""
    own = spark.newSession()
    for name in REPLACED:
        own.udf.register(name, lambda *given: f"{given[-1]}mine", "string")
    # Spark prefers its own to it, in every version
    own.sql("CREATE OR REPLACE FUNCTION spark_catalog.default.levenshtein(x STRING) RETURNS STRING RETURN 'mine'")
    return own


def test_a_function_of_a_user_under_a_builtin_name_is_not_called(replaced: SparkSession) -> None:
    """Spark's own are called, or the expression is refused: by a setting, and on Spark 4.0 and 4.1."""
    assert tried(replaced, "levenshtein(s, 'x')") == ["int"]
    if calls_built_in_functions_first(replaced):
        assert tried(replaced, *REPLACED.values()) == ["string", "boolean", "int"]
        assert replaced.sql("SELECT soundex('x')").collect()[0][0] == "X000"
        replaced.conf.set("spark.sql.functionResolution.sessionOrder", "first")
        refusal = r"system\.session,system\.builtin"
    else:
        refusal = r"calls (soundex|between|extract), which is not .*replaces Spark's own.*spark\.newSession\(\)"
    assert replaced.sql("SELECT soundex('x')").collect()[0][0] == "xmine"
    for text in REPLACED.values():
        with pytest.raises(ExpressionError, match=refusal) as caught:
            tried(replaced, text)
        assert caught.value.code == "DELTA_UDF_IN_CHECK_CONSTRAINT"


def test_a_text_that_calls_a_function_of_the_session_is_left_to_spark(replaced: SparkSession) -> None:
    schema = from_spark(SCHEMA)
    replaced.udf.register("upper", lambda text: f"{text}mine", "string")
    texts = ("upper(s) = 'X'", "id BETWEEN 1 AND 2")
    by_ours = [independent_text(replaced, text, schema, None) for text in (*texts, "lower(s) = 'x'")]
    assert by_ours[2] is not None
    assert [text is not None for text in by_ours[:2]] == [calls_built_in_functions_first(replaced)] * 2
    if by_ours[0] is not None:
        replaced.conf.set("spark.sql.functionResolution.sessionOrder", "first")
        assert [independent_text(replaced, text, schema, None) for text in texts] == [None, None]


def test_a_class_of_spark_under_a_name_of_the_session_is_not_sparks_function(spark: SparkSession) -> None:
    own = spark.newSession()
    own.sql("CREATE OR REPLACE TEMPORARY FUNCTION soundex AS 'org.apache.spark.sql.catalyst.expressions.SoundEx'")
    if calls_built_in_functions_first(own):
        assert tried(own, "soundex(s)") == ["string"]
    else:
        with pytest.raises(ExpressionError, match="soundex, which is not one of Spark's own functions"):
            tried(own, "soundex(s)")


def test_what_sparks_analyzer_itself_fails_at_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ExpressionError, match=r"Spark cannot compute .* for a row: .*dataType"):
        tried(spark, "exists(array(1), x -> s BETWEEN 'a' AND 'b' IS NULL)")


def test_each_function_of_spark_was_judged(spark: SparkSession) -> None:
    """What a later Spark adds is refused until somebody has looked at it: then it stands in one of the two lists."""
    registry = spark._jsparkSession.sessionState().functionRegistry()
    found = registry.listFunction()
    infos = [registry.lookupFunction(found.apply(i)).get() for i in range(found.size())]
    own = [info for info in infos if info.getClassName().startswith("org.apache.spark.sql.catalyst.expressions.")]
    groups = {info.getName(): info.getGroup() for info in own}
    names = {name for name in groups if name.isidentifier()}
    assert {name for name in names - ALLOWED_FUNCTIONS if groups[name] not in _REFUSED_GROUPS} <= REFUSED
    assert not any(groups[name] in _REFUSED_GROUPS for name in names & ALLOWED_FUNCTIONS)
    assert {"upper", "date_add", "transform", "uuid"} <= ALLOWED_FUNCTIONS & names
    assert not ALLOWED_FUNCTIONS & REFUSED
