package io.indextables;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.execution.streaming.Sink;

/** A stream into a table: Python commits each batch under the id of the query and its number, once. */
public class StreamSink implements Sink {
  private final Map request;

  StreamSink(Map request) {
    this.request = request;
    Bridge.call("stream_into", request);
  }

  public void addBatch(long number, Dataset data) {
    org.apache.spark.sql.classic.SparkSession session = Sessions.active();
    HashMap objects = new HashMap();
    // The rows of the batch as the stream computes them: its plan alone would forget the state of aggregates.
    objects.put("data", session.internalCreateDataFrame(((org.apache.spark.sql.classic.Dataset) data).queryExecution().toRdd(), data.schema(), false));
    HashMap batch = new HashMap(request);
    batch.put("batch", Long.valueOf(number));
    batch.put("query", session.sparkContext().getLocalProperty("sql.streaming.queryId"));
    Bridge.call("stream_write", batch, objects);
  }

  public String toString() { return "IndexTables[" + request.get("path") + "]"; }
}
