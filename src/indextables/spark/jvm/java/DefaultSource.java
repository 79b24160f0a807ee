package io.indextables;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** `USING indextables` and format("indextables") for every front end of Spark. */
public class DefaultSource implements DataSourceRegister, TableProvider, CreatableRelationProvider {
  public String shortName() { return "indextables"; }

  public StructType inferSchema(CaseInsensitiveStringMap options) { return table(options.asCaseSensitiveMap()).schema; }

  public Table getTable(StructType schema, Transform[] by, Map properties) { return table(properties); }

  private static VersionTable table(Map properties) {
    HashMap options = new HashMap(properties);
    HashMap when = new HashMap();
    String path = null;
    for (java.util.Iterator i = properties.keySet().iterator(); i.hasNext();) {
      String key = (String) i.next();
      if (key.equalsIgnoreCase("path")) path = (String) options.remove(key);
      else if (key.equalsIgnoreCase("versionAsOf")) when.put("versionAsOf", options.remove(key));
      else if (key.equalsIgnoreCase("timestampAsOf")) when.put("timestampAsOf", options.remove(key));
    }
    if (path == null) throw new IllegalArgumentException("format(\"indextables\") needs the path of a table: load(\"/path\")");
    return new IndexTable("indextables.`" + path + "`", path, options, when, true);
  }

  public BaseRelation createRelation(SQLContext context, SaveMode mode, scala.collection.immutable.Map options, Dataset data) {
    HashMap stored = new HashMap(CaseClasses.java(options));
    HashMap objects = new HashMap();
    objects.put("data", data);
    Object path = stored.remove("path");
    Bridge.call("save", Bridge.map(new Object[] {"path", path, "given", stored, "mode", mode.name()}), objects);
    HashMap read = new HashMap();
    read.put("path", path);
    return table(read).relation(null);
  }
}
