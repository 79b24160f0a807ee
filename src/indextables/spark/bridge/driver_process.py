"""The Python process of a driver that is not Python: attaches to the JVM that started it.

`PythonProcess.java` starts it with the port and the secret of a gateway in its environment. It
ends when its standard input does, which is when that JVM ends.
"""

# because PySpark keeps its JVM objects private
from __future__ import annotations

import sys
from typing import Any

from indextables.spark.bridge.attach import attach
from indextables.spark.patches import install_translation
from indextables.spark.read.relation import index_class
from indextables.spark.versions import classic


def attached() -> Any:
    """A Python session over the JVM's session."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    spark = gateway.jvm.org.apache.spark
    java = spark.api.java.JavaSparkContext(spark.SparkContext.getOrCreate())
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    if context.master.startswith("local"):
        context.pythonExec = sys.executable
    sessions = getattr(classic(gateway.jvm), "SparkSession$")
    return SparkSession(context, getattr(sessions, "MODULE$").getDefaultSession().get())


def main() -> None:
    """Answer requests until the JVM ends."""
    install_translation()
    spark = attached()
    index_class(spark)
    attach(spark, plain=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
