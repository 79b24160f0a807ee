package io.indextables;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.python.Py4JServer;

/**
 * The Python side where the driver is not Python: spark-sql, the Thrift server, a Spark Connect server.
 *
 * A Python process is started with the first question and attaches to this JVM over a loopback port with a secret. Its
 * standard input ends with this JVM, and so does it. One that has died is started again by the next question.
 */
final class Helper {
  private static final long PATIENCE_MS = 120000L;
  private static Process process = null;
  private static File said = null;

  private Helper() { }

  /** Sees to it that somebody answers; a session of PySpark's that is connected does so itself. */
  static synchronized void ensure() {
    boolean ours = process != null;
    if (Bridge.attached() && (!ours || process.isAlive())) return;
    Bridge.detach();
    SparkConf conf = SparkEnv.get().conf();
    String python = python(conf);
    try {
      Py4JServer server = new Py4JServer(conf);
      server.start();
      ProcessBuilder builder = new ProcessBuilder(new String[] {python, "-m", "indextables.spark.catalog.jvm_driver"});
      builder.environment().put("PYSPARK_GATEWAY_PORT", String.valueOf(server.getListeningPort()));
      builder.environment().put("PYSPARK_GATEWAY_SECRET", server.secret());
      said = File.createTempFile("indextables-helper", ".log");
      said.deleteOnExit();
      builder.redirectErrorStream(true);
      builder.redirectOutput(said);
      process = builder.start();
      long until = System.currentTimeMillis() + PATIENCE_MS;
      while (!Bridge.attached() && process.isAlive() && System.currentTimeMillis() < until) Thread.sleep(50L);
    } catch (java.io.IOException e) {
      throw new IllegalStateException("IndexTables needs Python with the package indextables, and " + python
        + " cannot be started: " + e.getMessage() + ". Set spark.pyspark.python or PYSPARK_PYTHON.", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while Python was starting", e);
    }
    if (!Bridge.attached()) throw new IllegalStateException("the Python side of IndexTables (" + python + ") did not start. It said: " + words());
  }

  static RuntimeException lost(String op, Exception e) {
    return new IllegalStateException("Python went away while it answered '" + op + "': " + e.getMessage()
      + ". What it was writing may or may not have been committed: look at the history of the table.", e);
  }

  private static String python(SparkConf conf) {
    String[] keys = new String[] {"spark.pyspark.driver.python", "spark.pyspark.python"};
    for (int i = 0; i < keys.length; i++) if (conf.contains(keys[i])) return conf.get(keys[i]);
    String[] names = new String[] {"PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"};
    for (int i = 0; i < names.length; i++) if (System.getenv(names[i]) != null) return System.getenv(names[i]);
    return "python3";
  }

  private static String words() {
    try {
      String all = new String(Files.readAllBytes(said.toPath()), StandardCharsets.UTF_8).trim();
      return all.substring(Math.max(0, all.length() - 2000));
    } catch (java.io.IOException e) {
      return "nothing";
    }
  }
}
