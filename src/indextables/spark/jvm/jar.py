"""The Java classes on the driver, as a jar for one line of Spark.

A released wheel carries one jar per line (`make wheel`). Without it, and for a line
that it does not know, the first session compiles the classes into the user's cache
with the Janino that Spark carries: no JDK is needed, and no binary lies in the
repository. What a jar was made of and for is written into it, so that one of other
sources is noticed.
"""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import tempfile
import zipfile
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from indextables.errors import TableError
from indextables.spark.jvm.sources import digest, sources_for
from indextables.spark.versions import check_machine, line_of

logger = logging.getLogger(__name__)

_MARK = "io/indextables/sources"
_MADE_FOR = "io/indextables/spark-version"
_SERVICE = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
_FORMATS = tuple(f"io.indextables.DefaultSource{name}" for name in ("", "$Core", "$Provider"))
CARRIED = "indextables/spark/jvm/jars"
"""Where a wheel has its jars."""
_LOADER = "MutableURLClassLoader"


def put_on_class_path(spark: Any) -> None:
    """Add the classes to a session's driver, unless `spark.jars` already did."""
    jvm = spark.sparkContext._jvm
    java = str(jvm.java.lang.System.getProperty("java.version"))
    check_machine(str(spark.version), java, str(jvm.scala.util.Properties.versionNumberString()))
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loaded = _loaded_sources(jvm, loader)
    if loaded == digest():
        return
    if loaded is not None:
        raise TableError(
            "spark.jars names a jar of another version of IndexTables than the Python package. "
            "Make it again with: python -m indextables jar"
        )
    while not str(loader.getClass().getSimpleName()).endswith(_LOADER):
        loader = loader.getParent()
        if loader is None:
            raise TableError(
                "this driver takes no further classes while it runs; start it with spark.jars set to the jar "
                "that `python -m indextables jar` makes"
            )
    path = str(jar(spark.sparkContext._gateway, str(spark.version)))
    loader.addURL(jvm.java.io.File(path).toURI().toURL())
    if re.fullmatch(r"local(\[.*\])?", spark.sparkContext.master) is None:
        # Executors compute `search` of words and of variants.
        spark.sparkContext._jsc.addJar(path)


def jar(gateway: Any, spark_version: str) -> Path:
    """The jar for a version of Spark; compiled in the gateway's JVM if there is none yet."""
    path = _ready(spark_version)
    if path is None:
        path = _cache() / _jar_name(spark_version)
        logger.warning(
            "IndexTables has no Java classes for Spark %s; compiling them into %s, once", spark_version, path
        )
        compile_into(gateway, path, spark_version)
    return path


def carried_name(spark_version: str) -> str:
    """The name of the jar in a wheel for a version of Spark."""
    return "indextables-spark-{}.{}.jar".format(*line_of(spark_version))


def _jar_name(spark_version: str) -> str:
    return f"indextables-spark-{spark_version}-{digest()}.jar"


def _ready(spark_version: str) -> Path | None:
    """The jar in the wheel, or one compiled before; None when there is neither."""
    carried = files("indextables.spark.jvm").joinpath("jars", carried_name(spark_version))
    if carried.is_file():
        with as_file(carried) as path:
            if path.is_file() and fits(path, spark_version):
                return path
    compiled = _cache() / _jar_name(spark_version)
    return compiled if compiled.is_file() else None


def fits(packed: Path, spark_version: str) -> bool:
    """Whether a jar was compiled from these sources, for a Spark of the same first two numbers."""
    with zipfile.ZipFile(packed) as opened:
        sources_digest, version = opened.read(_MARK).decode(), opened.read(_MADE_FOR).decode()
    return sources_digest == digest() and line_of(version) == line_of(spark_version)


def ready_jar(into: str | None = None) -> Path:
    """The jar for the installed PySpark, copied to `into` if given; starts a JVM if necessary."""
    from pyspark import __version__
    from pyspark.java_gateway import launch_gateway

    path = _ready(str(__version__))
    if path is None:
        gateway = launch_gateway()
        try:
            path = jar(gateway, str(__version__))
        finally:
            gateway.shutdown()
    if into is None:
        return path
    shutil.copyfile(path, into)
    return Path(into)


def compile_into(gateway: Any, target: Path, spark_version: str) -> None:
    """Compile the sources with Janino in a running JVM."""
    with tempfile.TemporaryDirectory() as scratch:
        written, classes = Path(scratch, "java"), Path(scratch, "classes")
        written.mkdir()
        classes.mkdir()
        for name, text in sources_for(spark_version).items():
            written.joinpath(name).write_text(text, "utf-8")
        compiler = gateway.jvm.org.codehaus.janino.Compiler()
        compiler.setSourceVersion(8)
        compiler.setTargetVersion(8)
        # Against the jar files, all of them: classes found by reflection miss what they refer to.
        compiler.setClassPath(_java_files(gateway, _class_path(gateway.jvm)))
        compiler.setDestinationDirectory(gateway.jvm.java.io.File(str(classes)), False)
        compiler.compile(_java_files(gateway, sorted(written.iterdir())))
        pack(classes, target, spark_version)


def pack(classes: Path, target: Path, spark_version: str) -> None:
    """A jar of compiled classes; written aside and moved, so that nobody loads half of it."""
    handle, aside = tempfile.mkstemp(dir=target.parent, suffix=".jar")
    os.close(handle)
    with zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(classes.rglob("*.class")):
            packed.writestr(zipfile.ZipInfo(path.relative_to(classes).as_posix()), path.read_bytes())
        packed.writestr(zipfile.ZipInfo(_SERVICE), "".join(f"{name}\n" for name in _FORMATS))
        packed.writestr(zipfile.ZipInfo(_MARK), digest())
        packed.writestr(zipfile.ZipInfo(_MADE_FOR), spark_version)
    Path(aside).replace(target)


def _cache() -> Path:
    """A directory that only the user can write to, since its contents are executed."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    directory = Path(home, "indextables")
    with contextlib.suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    if os.access(directory, os.W_OK):
        return directory
    return _private()


@cache
def _private() -> Path:
    return Path(tempfile.mkdtemp(prefix="indextables-"))


def _class_path(jvm: Any) -> list[Path]:
    entries: list[Path] = []
    for entry in str(jvm.java.lang.System.getProperty("java.class.path")).split(os.pathsep):
        path = Path(entry)
        entries.extend(path.parent.glob("*.jar") if path.name == "*" else [path])
    return [path for path in entries if path.is_file()]


def _java_files(gateway: Any, paths: list[Path]) -> Any:
    array = gateway.new_array(gateway.jvm.java.io.File, len(paths))
    for at, path in enumerate(paths):
        array[at] = gateway.jvm.java.io.File(str(path))
    return array


def _loaded_sources(jvm: Any, loader: Any) -> str | None:
    """The digest of the sources whose classes the JVM has loaded; None when it has none."""
    stream = loader.getResourceAsStream(_MARK)
    if stream is None:
        return None
    try:
        return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
    finally:
        stream.close()
