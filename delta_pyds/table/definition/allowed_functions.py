"""The functions that an expression of a table may call: Spark's built-in functions that depend only on their arguments.

Invariant: a function listed here only computes a value of a row from its arguments, the clock, the session's user or a
random number. It reads no file, no other row and no state of the session, calls no code by name, and makes no rows. The
functions of Spark 4.0 to 4.3 were reviewed one by one. A function that a later Spark adds is refused until it is
listed here.

Left out on purpose: calls into the JVM (``reflect``), functions that read files by an option or an argument
(``from_xml``, ``from_avro``, ``from_protobuf``, ``xpath`` with its document types), the origin of a row
(``input_file_name``, ``monotonically_increasing_id``), the session (``current_database``, ``version``), errors with
text from the table (``raise_error``), aggregates, windows and generators.

Protocol: "CHECK Constraints", "Column Invariants", "Generated Columns", "Default Columns".
"""

from __future__ import annotations

# fmt: off
_NAMES = (
    # CSV
    "from_csv schema_of_csv to_csv "
    # JSON
    "from_json get_json_object json_array_length json_object_keys schema_of_json to_json "
    # URLs
    "parse_url try_parse_url try_url_decode url_decode url_encode "
    # arrays
    "array array_append array_compact array_contains array_distinct array_except array_insert array_intersect "
    "array_join array_max array_min array_position array_prepend array_remove array_repeat array_size array_union "
    "arrays_overlap arrays_zip flatten get sequence shuffle slice sort_array "
    # bits
    "bit_count bit_get getbit shiftleft shiftright shiftrightunsigned "
    # casts
    "bigint binary boolean date decimal double float int smallint string time timestamp tinyint "
    # collections
    "cardinality concat element_at reverse size try_element_at "
    # conditions
    "coalesce if ifnull nanvl nullif nullifzero nvl nvl2 when zeroifnull "
    # dates and times
    "add_months convert_timezone curdate current_date current_time current_timestamp date_add date_diff date_format "
    "date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek "
    "dayofyear extract from_unixtime from_utc_timestamp hour last_day localtime localtimestamp make_date "
    "make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval "
    "minute month monthname months_between next_day now quarter second time_bucket time_diff time_from_micros "
    "time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc timestamp_micros "
    "timestamp_millis timestamp_nanos timestamp_seconds to_date to_time to_timestamp to_timestamp_ltz "
    "to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc try_make_interval try_make_timestamp "
    "try_make_timestamp_ltz try_make_timestamp_ntz try_to_date try_to_time try_to_timestamp unix_date unix_micros "
    "unix_millis unix_nanos unix_seconds unix_timestamp weekday weekofyear year "
    # geometries
    "st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid "
    # hashes
    "crc32 hash md5 sha sha1 sha2 xxhash64 "
    # maps
    "map map_concat map_contains_key map_entries map_from_arrays map_from_entries map_keys map_values str_to_map "
    # numbers
    "abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc degrees e exp "
    "expm1 factorial floor greatest hex hypot least ln log log10 log1p log2 mod negative pi pmod positive pow power "
    "radians rand randn random rint round sec sign signum sin sinh sqrt tan tanh try_add try_divide try_mod "
    "try_multiply try_subtract unhex uniform width_bucket "
    # others
    "aes_decrypt aes_encrypt bitmap_bit_position bitmap_bucket_number bitmap_count current_user hmac session_user "
    "try_aes_decrypt typeof user uuid "
    # predicates
    "equal_null ilike isnan isnotnull isnull like regexp regexp_like rlike "
    # sketches
    "approx_top_k_estimate hll_sketch_estimate hll_union kll_sketch_get_n_bigint kll_sketch_get_n_double "
    "kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double "
    "kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float "
    "kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint "
    "kll_sketch_to_string_double kll_sketch_to_string_float theta_difference theta_intersection "
    "theta_sketch_estimate theta_union tuple_difference_double tuple_difference_integer "
    "tuple_difference_theta_double tuple_difference_theta_integer tuple_intersection_double "
    "tuple_intersection_integer tuple_intersection_theta_double tuple_intersection_theta_integer "
    "tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double "
    "tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer tuple_union_double "
    "tuple_union_integer tuple_union_theta_double tuple_union_theta_integer "
    # structs
    "named_struct struct "
    # texts
    "ascii base64 bit_length btrim char char_length character_length chr collate collation concat_ws contains "
    "decode elt encode endswith find_in_set format_number format_string from_base32 initcap instr is_valid_utf8 "
    "jaro_winkler_similarity lcase left len length levenshtein locate lower lpad ltrim luhn_check make_valid_utf8 "
    "mask octet_length overlay position printf quote randstr regexp_count regexp_extract regexp_extract_all "
    "regexp_instr regexp_replace regexp_substr repeat replace right rpad rtrim sentences soundex space split "
    "split_part startswith substr substring substring_index to_base32 to_binary to_char to_number to_varchar "
    "translate trim try_to_binary try_to_number try_validate_utf8 ucase unbase64 upper validate_utf8 "
    # variants
    "is_valid_variant is_variant_null parse_json schema_of_variant to_variant_object try_parse_json "
    "try_variant_array_append try_variant_get try_variant_insert try_variant_set variant_array_append "
    "variant_delete variant_get variant_insert variant_set variant_strip_nulls "
    # vectors
    "vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize "
    # with lambdas
    "aggregate array_sort exists filter forall map_filter map_zip_with reduce transform transform_keys "
    "transform_values zip_with "
)
# fmt: on

ALLOWED_FUNCTIONS = frozenset(_NAMES.split())
