"""The bridge to the JVM gives the same columns with fewer calls. These tests need a session with a JVM of its own."""

from __future__ import annotations

import pytest
from py4j.java_gateway import JavaClass, JavaMember, JVMView
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


@pytest.fixture
def jvm(spark: SparkSession) -> object:
    context = SparkContext._active_spark_context
    if context is None or "connect" in type(spark).__module__:
        pytest.skip("the session is a client of Spark Connect")
    return context._jvm


@pytest.mark.parametrize("length", [0, 1, 2, 9, 10, 11, 20, 21, 35])
def test_lists_of_every_length_arrive_whole(length: int, jvm: object, spark: SparkSession) -> None:
    frame = spark.range(1).select(*[F.lit(n).alias(f"c{n}") for n in range(length)])
    assert frame.columns == [f"c{n}" for n in range(length)]
    assert [tuple(row) for row in frame.collect()] == [tuple(range(length))]


def test_lists_may_contain_nothing_and_lists(jvm: object, spark: SparkSession) -> None:
    to_seq = jvm.PythonUtils.toSeq  # type: ignore[attr-defined]  # of Java
    assert to_seq([None, "a"]).mkString(",") == "null,a"
    assert to_seq(["a", 1, True]).mkString(",") == "a,1,true"
    assert to_seq([["a"], ["b"]]).size() == 2


@pytest.mark.parametrize("text", ["", " ", "a\x1fb", "\n", "é € 😀", "`a` AS `b,c`", "\\", "\x00"])
def test_many_texts_arrive_as_they_are(text: str, jvm: object) -> None:
    texts = [*map(str, range(12)), text, *map(str, range(12))]
    arrived = jvm.PythonUtils.toSeq(texts)  # type: ignore[attr-defined]  # of Java
    assert [arrived.apply(index) for index in range(arrived.size())] == texts


def test_an_unknown_function_is_still_unknown(jvm: object) -> None:
    with pytest.raises(Exception, match="no_such_function"):
        jvm.functions.no_such_function(1)  # type: ignore[attr-defined]  # of Java


def test_columns_cost_few_questions(jvm: object, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark would ask for the class and for the method of each column, and append each to a list."""
    frame = spark.range(1)
    wanted = [F.lit(n).alias(f"c{n}") for n in range(50)]
    asked: list[str] = []
    for bridge, method in ((JVMView, "__getattr__"), (JavaClass, "__getattr__"), (JavaMember, "__call__")):
        before = getattr(bridge, method)

        def counted(self: object, *args: object, _before: object = before) -> object:
            asked.append(type(self).__name__)
            return _before(self, *args)  # type: ignore[operator]  # a method of py4j

        monkeypatch.setattr(bridge, method, counted)
    for n in range(50):
        F.lit(n)
    assert asked == ["JavaMember"] * 50
    asked.clear()
    frame.select(*wanted)
    assert len(asked) < 30
    asked.clear()
    frame.selectExpr(*(f"id AS c{n}" for n in range(50)))
    assert len(asked) < 15
