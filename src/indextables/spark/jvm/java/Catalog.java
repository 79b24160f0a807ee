package io.indextables;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.*;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat$;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType$;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/**
 * The session catalog, which knows a table of ours by its provider; every other table is that of the catalog beneath.
 *
 * An entry says where a table is and nothing more: columns, comments and properties are the log's.
 */
public class Catalog extends DelegatingCatalogExtension implements StagingTableCatalog, TableNames {
  /** The entry of a table of ours; null for every other name. */
  private static CatalogTable entry(Identifier ident) {
    if (ident.namespace().length > 1 || !Sessions.catalog().tableExists(Sessions.name(ident))) return null;
    CatalogTable entry;
    try {
      entry = Sessions.catalog().getTableMetadata(Sessions.name(ident));
    } catch (Exception gone) {
      return null;
    }
    return entry.provider().isDefined() && "indextables".equalsIgnoreCase((String) entry.provider().get()) ? entry : null;
  }

  /** Whether a name is a path: it has a slash in it, or there is no database whose table it could be. */
  private static boolean byPath(Identifier ident) {
    if (ident.namespace().length != 1 || !ident.namespace()[0].equalsIgnoreCase("indextables")) return false;
    return ident.name().indexOf('/') >= 0 || !Sessions.catalog().databaseExists("indextables");
  }

  public Set capabilities() {
    java.util.HashSet capabilities = new java.util.HashSet(super.capabilities());
    capabilities.addAll(Definitions.capabilities());
    return capabilities;
  }

  public Table named(Identifier ident, Map when) {
    if (byPath(ident)) return new IndexTable("indextables.`" + ident.name() + "`", ident.name(), new HashMap(), when, false);
    CatalogTable entry = entry(ident);
    Map options = CaseClasses.java(entry.storage().properties());
    HashMap stored = new HashMap(options);
    stored.remove("serialization.format");
    String name = "spark_catalog." + entry.identifier().unquotedString().replaceFirst("^spark_catalog\\.", "");
    IndexTable table = new IndexTable(name, entry.location().toString(), stored, when, false);
    table.managed = entry.tableType().equals(CatalogTableType$.MODULE$.MANAGED());
    return table;
  }

  private Table load(Identifier ident, Map when) throws NoSuchTableException {
    if (byPath(ident) || entry(ident) != null) return named(ident, when);
    return null;
  }

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    Table table = load(ident, new HashMap());
    if (table != null) return table;
    if (!super.tableExists(ident)) return Definitions.travelled(this, ident);
    return super.loadTable(ident);
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    Table table = load(ident, Definitions.version(version));
    return table != null ? table : super.loadTable(ident, version);
  }

  public Table loadTable(Identifier ident, long micros) throws NoSuchTableException {
    Table table = load(ident, Definitions.instant(micros));
    return table != null ? table : super.loadTable(ident, micros);
  }

  public boolean tableExists(Identifier ident) { return exists(ident); }

  // ---- definitions ----

  public Table createTable(Identifier ident, Column[] columns, Transform[] by, Map properties) throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (!Definitions.ours(properties)) return super.createTable(ident, columns, by, properties);
    return Definitions.create(this, ident, CatalogV2Util.v2ColumnsToStructType(columns), by, properties);
  }

  public Table createTable(Identifier ident, StructType schema, Transform[] by, Map properties) throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (!Definitions.ours(properties)) return super.createTable(ident, schema, by, properties);
    return Definitions.create(this, ident, schema, by, properties);
  }

  // since 4.1
  public Table createTable(Identifier ident, TableInfo info) throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (Definitions.ours(info.properties())) return Definitions.create(this, ident, info);
    Definitions.refuseConstraints(info, "a table of another format");
    return super.createTable(ident, info);
  }

  public StagedTable stageCreate(Identifier ident, TableInfo info) throws TableAlreadyExistsException, NoSuchNamespaceException {
    Definitions.refuseConstraints(info, "CREATE TABLE ... AS");
    return staged(ident, CatalogV2Util.v2ColumnsToStructType(info.columns()), info.partitions(), info.properties(), "create");
  }

  public StagedTable stageReplace(Identifier ident, TableInfo info) throws NoSuchNamespaceException, NoSuchTableException {
    Definitions.refuseConstraints(info, "REPLACE TABLE");
    return staged(ident, CatalogV2Util.v2ColumnsToStructType(info.columns()), info.partitions(), info.properties(), "replace");
  }

  public StagedTable stageCreateOrReplace(Identifier ident, TableInfo info) throws NoSuchNamespaceException {
    Definitions.refuseConstraints(info, "CREATE OR REPLACE TABLE");
    return staged(ident, CatalogV2Util.v2ColumnsToStructType(info.columns()), info.partitions(), info.properties(), "replace");
  }
  // end

  // since 4.3
  public Table createTableLike(Identifier ident, TableInfo info, Table source) throws TableAlreadyExistsException, NoSuchNamespaceException {
    boolean same = info.properties().get("provider") == null && source instanceof VersionTable;
    if (!same && !Definitions.ours(info.properties())) return super.createTableLike(ident, info, source);
    return Definitions.like(this, ident, info, source);
  }
  // end

  public Table alterTable(Identifier ident, TableChange... changes) throws NoSuchTableException {
    Table table = loadTable(ident);
    if (!(table instanceof VersionTable)) return super.alterTable(ident, changes);
    Definitions.alter((VersionTable) table, changes);
    return loadTable(ident);
  }

  /** Straight from the entry: a table whose log is damaged can still be dropped. */
  public boolean dropTable(Identifier ident) { return dropped(ident, false) || super.dropTable(ident); }

  public boolean purgeTable(Identifier ident) { return dropped(ident, true) || super.purgeTable(ident); }

  private static boolean dropped(Identifier ident, boolean purge) {
    if (entry(ident) == null) return false;
    Sessions.catalog().dropTable(Sessions.name(ident), true, purge);
    return true;
  }

  public void renameTable(Identifier from, Identifier to) throws NoSuchTableException, TableAlreadyExistsException {
    if (entry(from) == null) {
      super.renameTable(from, to);
      return;
    }
    if (super.tableExists(to)) throw new TableAlreadyExistsException(to);
    Sessions.catalog().renameTable(Sessions.name(from), Sessions.name(to));
  }

  public boolean exists(Identifier ident) {
    if (!byPath(ident)) return super.tableExists(ident);
    return Boolean.TRUE.equals(Bridge.call("exists", Bridge.map(new Object[] {"path", ident.name()})).get("exists"));
  }

  public String location(Identifier ident, HashMap properties) {
    String location = (String) properties.get("location");
    if (location != null) return location;
    if (byPath(ident)) return ident.name();
    String path = Sessions.catalog().defaultTablePath(Sessions.name(ident)).toString();
    properties.put("location", path);
    properties.put(Definitions.MANAGED, "true");
    return path;
  }

  public void enter(Identifier ident, HashMap properties) {
    if (byPath(ident)) return;
    HashMap options = new HashMap(Definitions.options(properties));
    for (Iterator i = options.keySet().iterator(); i.hasNext();) if (((String) i.next()).toLowerCase().indexOf("indexing.") >= 0) i.remove();
    Object storage = CaseClasses.copy(CatalogStorageFormat$.MODULE$.empty(), new Object[] {
      "locationUri", scala.Option.apply(new org.apache.hadoop.fs.Path((String) properties.get("location")).toUri()),
      "properties", CaseClasses.scalaMap(options)});
    boolean managed = "true".equals(properties.get(Definitions.MANAGED));
    Object entry = CaseClasses.make(CatalogTable.class, new Object[] {
      "identifier", Sessions.name(ident), "storage", storage, "schema", new StructType(), "provider", scala.Option.apply("indextables"),
      "tableType", managed ? CatalogTableType$.MODULE$.MANAGED() : CatalogTableType$.MODULE$.EXTERNAL(),
      "partitionColumnNames", CaseClasses.seq(new java.util.ArrayList())});
    // Not through V2SessionCatalog, which refuses a managed table whose directory is there already.
    Sessions.catalog().createTable((CatalogTable) entry, false, false);
  }

  // ---- CREATE TABLE AS and REPLACE TABLE ----

  public StagedTable stageCreate(Identifier ident, StructType schema, Transform[] by, Map properties) throws TableAlreadyExistsException, NoSuchNamespaceException {
    return staged(ident, schema, by, properties, "create");
  }

  public StagedTable stageReplace(Identifier ident, StructType schema, Transform[] by, Map properties) throws NoSuchNamespaceException, NoSuchTableException {
    return staged(ident, schema, by, properties, "replace");
  }

  public StagedTable stageCreateOrReplace(Identifier ident, StructType schema, Transform[] by, Map properties) throws NoSuchNamespaceException {
    return staged(ident, schema, by, properties, "replace");
  }

  private StagedTable staged(Identifier ident, StructType schema, Transform[] by, Map properties, String kind) {
    boolean other = exists(ident) && !byPath(ident) && entry(ident) == null;
    if (!Definitions.ours(properties) || other) {
      throw new UnsupportedOperationException(ident + " is not a table of IndexTables, and only those can be replaced: drop it first, or name USING indextables");
    }
    HashMap entry = new HashMap(properties);
    CatalogTable old = entry(ident);
    if (old != null && !entry.containsKey("location")) entry.put("location", old.location().toString());
    return new Staged(this, ident, schema, by, entry, kind);
  }
}
