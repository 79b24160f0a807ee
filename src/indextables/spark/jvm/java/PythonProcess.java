package io.indextables;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Function;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.python.Py4JServer;

/**
 * The Python side where the driver is not Python: spark-sql, the Thrift server, a Spark Connect server.
 *
 * A Python process is started with the first question and attaches to this JVM over a loopback port with a secret. Its
 * standard input ends with this JVM, and so does it. One that has died is started again by the next question; one that
 * does not attach in time is ended.
 */
final class PythonProcess {
  private static final long PATIENCE_MS = 120000L;
  private static final String ADVICE = " Set spark.pyspark.python or PYSPARK_PYTHON to a Python that has the package: pip install \"indextables[spark]\".";
  private static Process process = null;
  private static Py4JServer server = null;
  private static Function side = null;
  private static Path output = null;

  private PythonProcess() { }

  /** Sees to it that somebody answers; a session of PySpark's that is connected does so itself. */
  static synchronized void ensure() {
    boolean started = process != null && Bridge.side() == side;
    if (Bridge.side() != null && (!started || process.isAlive())) return;
    stop();
    SparkConf conf = SparkEnv.get().conf();
    String python = python(conf);
    try {
      start(conf, python);
      long until = System.currentTimeMillis() + PATIENCE_MS;
      while (Bridge.side() == null && process.isAlive() && System.currentTimeMillis() < until) Thread.sleep(50L);
    } catch (java.io.IOException e) {
      stop();
      throw new IllegalStateException("IndexTables needs Python, and " + python + " cannot be started: " + e.getMessage() + "." + ADVICE, e);
    } catch (InterruptedException e) {
      stop();
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while Python was starting", e);
    }
    side = Bridge.side();
    if (side != null) return;
    String how = process.isAlive() ? "was not ready after " + PATIENCE_MS / 1000L + " seconds" : "ended before it was ready";
    String words = words();
    stop();
    throw new IllegalStateException("the Python side of IndexTables (" + python + ") " + how + "." + ADVICE + " It said: " + words);
  }

  private static void start(SparkConf conf, String python) throws java.io.IOException {
    output = Files.createTempFile("indextables-helper", ".log", new java.nio.file.attribute.FileAttribute[0]);
    output.toFile().deleteOnExit();
    server = new Py4JServer(conf);
    server.start();
    ProcessBuilder builder = new ProcessBuilder(new String[] {python, "-m", "indextables.spark.bridge.driver_process"});
    builder.environment().put("PYSPARK_GATEWAY_PORT", String.valueOf(server.getListeningPort()));
    builder.environment().put("PYSPARK_GATEWAY_SECRET", server.secret());
    builder.redirectErrorStream(true);
    builder.redirectOutput(output.toFile());
    process = builder.start();
  }

  /** Nobody answers afterwards, and no port of a process that is gone stays open. */
  private static void stop() {
    Bridge.detach();
    if (process != null) process.destroyForcibly();
    if (server != null) server.shutdown();
    process = null;
    server = null;
    side = null;
  }

  static RuntimeException lost(String op, Exception e) {
    boolean reads = "describe".equals(op) || "exists".equals(op) || "relation".equals(op) || "plan".equals(op)
      || "statement".equals(op) || "stream_open".equals(op) || "stream_offset".equals(op) || "stream_batch".equals(op);
    return new IllegalStateException("Python went away while it answered '" + op + "': " + e.getMessage() + ". "
      + (reads ? "Nothing was written; run the statement again."
               : "What it was writing may or may not have been committed: look at the history of the table."), e);
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
      String all = new String(Files.readAllBytes(output), StandardCharsets.UTF_8).trim();
      return all.substring(Math.max(0, all.length() - 2000));
    } catch (java.io.IOException e) {
      return "nothing";
    }
  }
}
