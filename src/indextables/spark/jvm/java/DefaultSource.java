package io.indextables;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.StreamSinkProvider;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** `USING indextables` and format("indextables") for every front end of Spark. */
public class DefaultSource implements DataSourceRegister, TableProvider, CreatableRelationProvider, StreamSourceProvider, StreamSinkProvider {
  public String shortName() { return "indextables"; }

  /** Spark asks for it only to give it back with `getTable`, also for a stream, whose table need not be there yet. */
  public StructType inferSchema(CaseInsensitiveStringMap options) { return new StructType(); }

  public Table getTable(StructType schema, Transform[] by, Map properties) { return table(properties); }

  private static VersionTable table(Map properties) {
    HashMap options = new HashMap(properties);
    HashMap when = new HashMap();
    String path = pathOf(options);
    for (java.util.Iterator i = properties.keySet().iterator(); i.hasNext();) {
      String key = (String) i.next();
      if (key.equalsIgnoreCase("versionAsOf")) when.put("versionAsOf", options.remove(key));
      else if (key.equalsIgnoreCase("timestampAsOf")) when.put("timestampAsOf", options.remove(key));
    }
    return new IndexTable("indextables.`" + path + "`", path, options, when, true);
  }

  /** `save(path)`: Spark gives the columns of partitionBy and clusterBy as options of its own. */
  public BaseRelation createRelation(SQLContext context, SaveMode mode, scala.collection.immutable.Map options, Dataset data) {
    Map given = written(options);
    HashMap objects = new HashMap();
    objects.put("data", data);
    Bridge.call("save", Bridge.map(new Object[] {"path", pathOf(given), "given", given, "mode", mode.name()}), objects);
    return new Written(context, data.schema());
  }

  // since 4.0
  /** Which types can be written is decided with the rest of the schema, and said in the same words. */
  public boolean supportsDataType(org.apache.spark.sql.types.DataType type) { return true; }
  // end

  public scala.Tuple2 sourceSchema(SQLContext context, scala.Option schema, String name, scala.collection.immutable.Map options) {
    return new scala.Tuple2("indextables", createSource(context, null, schema, name, options).schema());
  }

  public Source createSource(SQLContext context, String metadata, scala.Option schema, String name, scala.collection.immutable.Map options) {
    Map given = written(options);
    return new StreamSource(pathOf(given), given, schema.isDefined() && ((StructType) schema.get()).length() > 0);
  }

  public Sink createSink(SQLContext context, scala.collection.immutable.Map options, scala.collection.immutable.Seq by, OutputMode mode) {
    Map given = written(options);
    java.util.ArrayList columns = new java.util.ArrayList();
    for (scala.collection.Iterator i = by.iterator(); i.hasNext();) columns.add(i.next());
    return new StreamSink(Bridge.map(new Object[] {
      "path", pathOf(given), "options", given, "mode", mode.toString(), "partitions", columns.isEmpty() ? null : columns}));
  }

  /** The options as they were written: names of columns among them keep their case. */
  private static Map written(scala.collection.immutable.Map options) {
    return new HashMap(CaseClasses.java(options instanceof CaseInsensitiveMap ? ((CaseInsensitiveMap) options).originalMap() : options));
  }

  private static String pathOf(Map options) {
    String path = null;
    for (java.util.Iterator i = options.keySet().iterator(); i.hasNext();) {
      String key = (String) i.next();
      if (!key.equalsIgnoreCase("path")) continue;
      path = (String) options.get(key);
      i.remove();
    }
    if (path == null) throw new IllegalArgumentException("format(\"indextables\") needs the path of a table: load(\"/path\")");
    return path;
  }

  /** What Spark asks for after `save`, to look for caches of it. It reads nothing: caches follow our commits. */
  private static class Written extends BaseRelation {
    private final SQLContext context;
    private final StructType columns;

    Written(SQLContext context, StructType columns) {
      this.context = context;
      this.columns = columns;
    }

    public SQLContext sqlContext() { return context; }

    public StructType schema() { return columns; }
  }

  /** Other names of the format, which are those of classes elsewhere. */
  public static class Core extends DefaultSource {
    public String shortName() { return "io.indextables.spark.core.IndexTables4SparkTableProvider"; }
  }

  public static class Provider extends DefaultSource {
    public String shortName() { return "io.indextables.provider.IndexTablesProvider"; }
  }
}
