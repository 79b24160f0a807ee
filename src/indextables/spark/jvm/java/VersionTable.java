package io.indextables;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.*;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * One table at one version of its log.
 *
 * Rows are read by Spark's Parquet reader and written by Python, so scans and writes of this class are only markers
 * that `PlanningRule` replaces.
 */
public class VersionTable implements Table, SupportsRead, SupportsWrite, SupportsRowLevelOperations, SupportsMetadataColumns {
  final String name;
  String path;
  final Map options;
  private final Map when;
  StructType schema;
  String[] partitions;
  long version;
  String identity;
  Map described;
  final boolean byPath;
  final boolean pinned;
  boolean managed = false;
  /** A Delta table: its rows can be read, and nothing of it can be changed. */
  boolean readOnly = false;
  /** Whether a plan makes its rows, because files hide rows or have other names for columns. */
  boolean derived = false;

  /** A table that is there; `when` holds versionAsOf or timestampAsOf. One by its path is looked at when Spark asks about it. */
  VersionTable(String name, String path, Map options, Map when, boolean byPath) {
    this.name = name;
    this.path = path;
    this.options = options;
    this.when = when;
    this.byPath = byPath;
    this.pinned = !when.isEmpty();
    if (!byPath) look();
  }

  /** What the log says of the table, asked for once. */
  private synchronized VersionTable look() {
    if (described != null) return this;
    Map description = Bridge.call("describe", Bridge.map(new Object[] {"path", path, "options", options, "when", when}));
    path = (String) description.get("path");
    schema = (StructType) DataType.fromJson((String) description.get("schema"));
    partitions = (String[]) ((List) description.get("partitions")).toArray(new String[0]);
    version = ((Number) description.get("version")).longValue();
    identity = (String) description.get("id");
    described = (Map) description.get("properties");
    readOnly = Boolean.TRUE.equals(description.get("readOnly"));
    derived = Boolean.TRUE.equals(description.get("derived"));
    return this;
  }

  /** A table that is yet to be made. */
  VersionTable(String name, String path, StructType schema, Map properties) {
    this.name = name;
    this.path = path;
    this.options = new HashMap();
    this.when = new HashMap();
    this.schema = schema;
    this.partitions = new String[0];
    this.version = -1L;
    this.identity = null;
    this.described = properties;
    this.byPath = false;
    this.pinned = false;
  }

  public String name() { return name; }
  public String toString() { return name + " version " + look().version; }
  public String id() { return look().identity; }
  public StructType schema() { return look().schema; }

  public Transform[] partitioning() {
    Transform[] transforms = new Transform[look().partitions.length];
    for (int i = 0; i < transforms.length; i++) transforms[i] = Expressions.identity("`" + partitions[i].replace("`", "``") + "`");
    return transforms;
  }

  public Map properties() {
    HashMap properties = new HashMap(look().described);
    properties.put("provider", "indextables");
    properties.put("location", path);
    if (managed) properties.put(Definitions.MANAGED, "true");
    return properties;
  }

  public Set capabilities() {
    HashSet capabilities = new HashSet();
    capabilities.add(TableCapability.BATCH_READ);
    capabilities.add(TableCapability.V1_BATCH_WRITE);
    if (!byPath) capabilities.add(TableCapability.BATCH_WRITE); // asked for before PlanningRule sees a dynamic overwrite
    capabilities.add(TableCapability.OVERWRITE_BY_FILTER);
    capabilities.add(TableCapability.OVERWRITE_DYNAMIC);
    capabilities.add(TableCapability.TRUNCATE);
    try {
      capabilities.add(TableCapability.valueOf("AUTOMATIC_SCHEMA_EVOLUTION"));
    } catch (IllegalArgumentException older) {
      // This Spark has no statement that asks for it.
    }
    return capabilities;
  }

  public boolean equals(Object other) {
    if (!(other instanceof VersionTable)) return false;
    VersionTable that = (VersionTable) other;
    return look().path.equals(that.look().path) && version == that.version && options.equals(that.options);
  }

  public int hashCode() { return look().path.hashCode() * 31 + (int) version; }

  public MetadataColumn[] metadataColumns() {
    return look().derived ? new MetadataColumn[0] : new MetadataColumn[] {new FileMetadata()};
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap given) { return new Marker(this); }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { return writing(info.options().asCaseSensitiveMap()); }

  TableWrite writing(Map given) { return new TableWrite(this, given, null); }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    return new Operation(this, info.command());
  }

  /** Refuses a statement that would change an older version, or a table that others write. */
  void requireWritable(String statement) {
    if (readOnly) Bridge.call("refuse_change", Bridge.map(new Object[] {"path", path, "statement", statement}));
    if (pinned) throw new UnsupportedOperationException(name + " is read as of version " + version + "; only the newest version can be written");
  }

  /** The relation that reads this version; with an id, one that is equal to no other and can be restricted to some files. */
  HadoopFsRelation relation(String id) { return relation("relation", id); }

  HadoopFsRelation relation(String purpose, String id) {
    HashMap objects = new HashMap();
    Bridge.call(purpose, Bridge.map(new Object[] {
      "path", look().path, "options", options, "version", Long.valueOf(version), "id", id}), objects);
    return (HadoopFsRelation) objects.get("relation");
  }

  /** The error for a search in a table that has no index. */
  void refuseSearch() {
    Bridge.call("refuse_search", Bridge.map(new Object[] {"path", path, "options", options, "version", Long.valueOf(version)}));
  }

  /** The plan that makes the rows of this version, where no relation alone does. */
  org.apache.spark.sql.catalyst.plans.logical.LogicalPlan rows() {
    HashMap objects = new HashMap();
    Bridge.call("rows", Bridge.map(new Object[] {"path", path, "options", options, "version", Long.valueOf(version)}), objects);
    return (org.apache.spark.sql.catalyst.plans.logical.LogicalPlan) objects.get("plan");
  }

  /** `_metadata`, as every file source of Spark has it. */
  public static class FileMetadata implements MetadataColumn {
    public String name() { return "_metadata"; }
    public boolean isNullable() { return false; }
    public DataType dataType() {
      return new org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat().createFileMetadataCol().dataType();
    }
  }

  /** Never executed: the rule puts Spark's Parquet relation in its place. */
  public static class Marker implements ScanBuilder, Scan {
    final VersionTable table;
    Marker(VersionTable table) { this.table = table; }
    public Scan build() { return this; }
    public StructType readSchema() { return table.schema; }
    public String description() { return "IndexTables " + table.path + " version " + table.version; }
    public org.apache.spark.sql.connector.read.Batch toBatch() {
      throw new IllegalStateException("this session does not know IndexTables: call indextables.connect(spark), or set spark.sql.extensions to io.indextables.Extensions");
    }
  }

  /**
   * DELETE, UPDATE or MERGE: which files it replaces is found out when it runs, not when it is planned.
   *
   * Spark makes one for each statement it plans, and the plan refers to it. Its relations belong to it alone, so what
   * one statement chooses never reaches another, even one of the same text.
   */
  public static class Operation implements RowLevelOperation, RowLevelOperationBuilder {
    final VersionTable table;
    final RowLevelOperation.Command command;
    private final String id = java.util.UUID.randomUUID().toString();
    private HadoopFsRelation target = null;
    private HadoopFsRelation probe = null;
    List conditions = null;
    boolean complete = false;
    /** A MERGE that reads no row of the table which it would have to write again. */
    boolean inserts = false;
    Object matching = null;
    /** The rows that are written, with a column that says what the statement does to each; for MERGE. */
    Object marked = null;
    /** How many rows the statement has changed in which way, once it has run. */
    volatile Map counts = new HashMap();

    Operation(VersionTable table, RowLevelOperation.Command command) {
      table.requireWritable(command.name());
      this.table = table;
      this.command = command;
    }

    /** The rows that are written again; restricted to the files that change. */
    synchronized HadoopFsRelation target() {
      if (target == null) target = table.relation(id + " target");
      return target;
    }

    /** The rows in which those that change are looked for. */
    synchronized HadoopFsRelation probe() {
      if (probe == null) probe = table.relation(id + " probe");
      return probe;
    }

    /** The file indexes of both, as far as the plan reads them. */
    synchronized void park(Map objects) {
      if (target != null) objects.put("target", target.location());
      if (probe != null) objects.put("probe", probe.location());
    }

    public RowLevelOperation build() { return this; }
    public RowLevelOperation.Command command() { return command; }
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap given) { return new Marker(table); }
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { return new TableWrite(table, info.options().asCaseSensitiveMap(), this); }
  }
}
