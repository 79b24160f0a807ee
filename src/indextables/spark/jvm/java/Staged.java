package io.indextables;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/** A definition with its rows: nothing is visible before Python commits both, and then the name is kept. */
public class Staged extends VersionTable implements StagedTable {
  final TableNames naming;
  final Identifier ident;
  final HashMap entry;
  final Transform[] by;
  final String kind;
  Dataset data = null;
  Map given = new HashMap();

  Staged(TableNames naming, Identifier ident, StructType schema, Transform[] by, HashMap entry, String kind) {
    super(ident.toString(), naming.location(ident, entry), schema, Definitions.settings(entry));
    this.naming = naming;
    this.ident = ident;
    this.entry = entry;
    this.by = by;
    this.kind = kind;
  }

  public boolean equals(Object other) { return this == other; }
  public int hashCode() { return ident.hashCode(); }
  public Transform[] partitioning() { return by; }
  TableWrite writing(Map given) { return new Rows(this, given); }

  public void commitStagedChanges() {
    HashMap objects = new HashMap();
    if (data != null) objects.put("data", data);
    Map request = Definitions.request(path, schema, by, entry, kind);
    request.put("given", given);
    Bridge.call("create", request, objects);
    if (!naming.exists(ident)) naming.enter(ident, entry);
  }

  public void abortStagedChanges() { }

  /** The rows wait for the commit of the definition. */
  public static class Rows extends TableWrite {
    final Staged staged;
    Rows(Staged staged, Map given) { super(staged, given, null); this.staged = staged; }
    public void insert(Dataset data, boolean overwrite) { staged.data = data; staged.given = given; }
  }
}
