package io.indextables;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.write.*;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.InsertableRelation;

/** A write: Spark hands over the rows as a Dataset, and Python makes splits of them and one commit. */
public class TableWrite implements WriteBuilder, SupportsOverwrite, SupportsDynamicOverwrite, V1Write, InsertableRelation {
  final VersionTable table;
  final Map given;
  final VersionTable.Operation operation;
  String mode = "append";
  Map where = null;

  TableWrite(VersionTable table, Map given, VersionTable.Operation operation) {
    table.requireWritable("INSERT");
    this.table = table;
    this.given = given;
    this.operation = operation;
  }

  public WriteBuilder truncate() { mode = "overwrite"; return this; }
  public WriteBuilder overwriteDynamicPartitions() { mode = "dynamic"; return this; }

  /** PlanningRule has sent the condition itself by now, with its types; filters say less. */
  public boolean canOverwrite(Filter[] filters) { return true; }
  public WriteBuilder overwrite(Filter[] filters) {
    if (where == null) throw new IllegalStateException("this session does not know IndexTables: call indextables.connect(spark)");
    return this;
  }

  public Write build() { return this; }
  public String description() { return "IndexTables " + (operation == null ? mode : operation.command.name()); }
  public String toString() { return description(); }
  public InsertableRelation toInsertableRelation() { return this; }

  public void insert(Dataset data, boolean overwrite) {
    HashMap objects = new HashMap();
    objects.put("data", data);
    Map request = Bridge.map(new Object[] {
      "path", table.path, "options", table.options, "given", given, "version", Long.valueOf(table.version), "mode", mode, "where", where});
    if (operation == null) {
      Bridge.call("write", request, objects);
      return;
    }
    request.put("command", operation.command.name());
    request.put("conditions", operation.conditions);
    request.put("complete", Boolean.valueOf(operation.complete));
    request.put("inserts", Boolean.valueOf(operation.inserts));
    operation.park(objects);
    if (operation.matching != null) objects.put("matching", operation.matching);
    if (operation.marked != null) objects.put("marked", operation.marked);
    operation.counts = Bridge.call("replace_rows", request, objects);
  }
}
