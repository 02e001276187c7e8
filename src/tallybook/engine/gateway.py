"""Makes the bridge between Python and the JVM faster, for a JVM of our own.

To build a plan, PySpark calls the JVM thousands of times. A third of these calls only ask whether a class or a static
method exists, and for a class that is not imported by its full name the JVM looks into every jar. Another quarter
appends the elements of a list, one call each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.java_gateway import JavaClass

_LARGEST = 10
"""`List.of` of Java takes so many elements in one call."""
_SEPARATOR = "\x1f"
"""Separates texts that reach the JVM as one."""


class _Remembered:
    """A Java class that asks the JVM once for each of its static methods, not at each call."""

    def __init__(self, java_class: Any) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._java_class, name)
        setattr(self, name, member)
        return member


class _PythonUtils(_Remembered):
    """Spark's `PythonUtils`, with lists that reach the JVM in few calls."""

    def __init__(self, java_class: Any) -> None:
        super().__init__(java_class)
        client = java_class._gateway_client
        self._to_seq = java_class.toSeq
        self._list_of = JavaClass("java.util.List", client).of
        self._new_list = JavaClass("java.util.ArrayList", client)
        self._list_all = JavaClass("java.util.Collections", client).list
        self._texts_in = JavaClass("java.util.StringTokenizer", client)

    def toSeq(self, values: Sequence[object]) -> Any:  # noqa: N802  # the name in Spark
        """Returns a Scala sequence. Many texts, such as the columns of a wide table, are sent as one."""
        if not isinstance(values, list | tuple) or len(values) < 2 or any(value is None for value in values):
            return self._to_seq(values)
        if len(values) <= _LARGEST:
            return self._to_seq(self._list_of(*values))
        if all(isinstance(value, str) and value and _SEPARATOR not in value for value in values):
            return self._to_seq(self._list_all(self._texts_in(_SEPARATOR.join(values), _SEPARATOR)))
        java_list = self._new_list()
        for start in range(0, len(values), _LARGEST):
            java_list.addAll(self._part(values[start : start + _LARGEST]))
        return self._to_seq(java_list)

    def _part(self, values: Sequence[object]) -> Any:
        """Returns a Java list. py4j itself converts a list of one: `List.of(x)` could mean an array `x`."""
        return self._list_of(*values) if len(values) > 1 else values


def remember_classes(jvm: Any) -> None:
    """Makes a JVM remember the classes that PySpark uses most to build plans."""
    for name in ("org.apache.spark.sql.functions", "functions", "PythonSQLUtils"):
        setattr(jvm, name, _Remembered(getattr(jvm, name)))
    jvm.PythonUtils = _PythonUtils(jvm.PythonUtils)
