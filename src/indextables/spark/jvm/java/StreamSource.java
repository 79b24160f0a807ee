package io.indextables;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * A table as a stream: Python says how far the next batch goes and which files it has, Spark's Parquet reader reads them.
 *
 * A source of the first kind, because each of its batches is a relation that Spark optimizes with the query: columns that
 * nobody reads and files that no row can match are left out, which streams of the second kind do not do.
 */
public class StreamSource implements Source, SupportsTriggerAvailableNow {
  /** Spark asks a hundred times a second while there is nothing new; the log is listed ten times. */
  private static final long PAUSE_NS = 100000000L;

  private final String path;
  private final Map options;
  private Map opened = new HashMap();
  private volatile Object until = null;
  private long idleSince = 0L;

  StreamSource(String path, Map options, boolean declared) {
    this.path = path;
    this.options = options;
    opened = ask("stream_open", new Object[] {"declared", Boolean.valueOf(declared)}, new HashMap());
  }

  private Map ask(String op, Object[] more, HashMap objects) {
    Map request = Bridge.map(more);
    request.put("path", path);
    request.put("options", options);
    request.put("opened", opened);
    return Bridge.call(op, request, objects);
  }

  public StructType schema() { return (StructType) DataType.fromJson((String) opened.get("schema")); }

  public String toString() { return "IndexTables[" + path + "]"; }

  /** Nothing newer than what is there now is read by this run. */
  public void prepareForTriggerAvailableNow() { until = ask("stream_open", new Object[0], new HashMap()).get("version"); }

  public ReadLimit getDefaultReadLimit() { return new OptionLimit(); }

  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    if (idleSince > 0L) java.util.concurrent.locks.LockSupport.parkNanos(idleSince + PAUSE_NS - System.nanoTime());
    String text = start == null ? null : start.json();
    String end = (String) ask("stream_offset", new Object[] {
      "start", text, "until", until, "limited", Boolean.valueOf(!(limit instanceof ReadAllAvailable))}, new HashMap()).get("offset");
    idleSince = end.equals(text) ? System.nanoTime() : 0L;
    return new Position(end);
  }

  public scala.Option getOffset() { throw new UnsupportedOperationException("Spark asks a source with limits for latestOffset"); }

  public Dataset getBatch(scala.Option start, Offset end) {
    HashMap objects = new HashMap();
    ask("stream_batch", new Object[] {"start", start.isEmpty() ? null : ((Offset) start.get()).json(), "end", end.json()}, objects);
    org.apache.spark.sql.classic.SparkSession session = Sessions.active();
    LogicalPlan plan = streaming((LogicalPlan) objects.get("plan"));
    org.apache.spark.sql.classic.Dataset rows = org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, plan);
    if (plan.isStreaming()) return rows;
    // Rows that Python reads come from no relation.
    return session.internalCreateDataFrame(rows.queryExecution().toRdd(), rows.schema(), true);
  }

  /** A plan whose relations of ours are those of a stream; what is joined to them, such as deleted rows, is not. */
  private static LogicalPlan streaming(LogicalPlan plan) {
    if (Origin.index(plan) != null) return (LogicalPlan) CaseClasses.copy(plan, new Object[] {"isStreaming", Boolean.TRUE});
    java.util.ArrayList children = new java.util.ArrayList();
    for (scala.collection.Iterator i = plan.children().iterator(); i.hasNext();) children.add(streaming((LogicalPlan) i.next()));
    return (LogicalPlan) plan.withNewChildren(CaseClasses.seq(children));
  }

  public void stop() { }

  /** What the options of the stream allow per batch; Python knows them. */
  public static class OptionLimit implements ReadLimit { }

  /** A place in the log, in the words of Python. */
  public static class Position extends Offset {
    private final String json;
    Position(String json) { this.json = json; }
    public String json() { return json; }
  }
}
