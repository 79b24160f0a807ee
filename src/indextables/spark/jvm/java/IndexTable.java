package io.indextables;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat$;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType$;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsPartitionManagement;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.catalog.V2TableWithV1Fallback;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;

/** A table that is there. A class of its own because staged and truncatable tables have defaults that exclude each other. */
public class IndexTable extends VersionTable implements TruncatableTable, SupportsPartitionManagement, V2TableWithV1Fallback {
  /** The DELETE of all rows that is to know how many they were. */
  VersionTable.Operation emptying = null;

  IndexTable(String name, String path, Map options, Map when, boolean byPath) { super(name, path, options, when, byPath); }

  /** How streams by name find the path and the options; `DefaultSource` does the rest. */
  public CatalogTable v1Table() {
    Object storage = CaseClasses.copy(CatalogStorageFormat$.MODULE$.empty(), new Object[] {
      "locationUri", scala.Option.apply(new org.apache.hadoop.fs.Path(path).toUri()), "properties", CaseClasses.scalaMap(options)});
    return (CatalogTable) CaseClasses.make(CatalogTable.class, new Object[] {
      "identifier", new TableIdentifier(path, scala.Option.apply("indextables")), "storage", storage, "schema", new StructType(), "provider", scala.Option.apply("indextables"),
      "tableType", CatalogTableType$.MODULE$.EXTERNAL(), "partitionColumnNames", CaseClasses.seq(new ArrayList())});
  }

  public boolean truncateTable() {
    requireWritable("TRUNCATE TABLE, or DELETE of all rows,");
    Map counts = Bridge.call("truncate", Bridge.map(new Object[] {"path", path, "options", options}));
    if (emptying != null) emptying.counts = counts;
    return true;
  }

  public StructType partitionSchema() {
    StructType fields = new StructType();
    for (int i = 0; i < partitions.length; i++) fields = fields.add(schema.apply(partitions[i]));
    return fields;
  }

  public void createPartition(InternalRow ident, Map properties) {
    requireWritable("ALTER TABLE ADD PARTITION");
    throw new UnsupportedOperationException("partitions of an IndexTables table come and go with their rows: INSERT creates them");
  }

  public void replacePartitionMetadata(InternalRow ident, Map properties) {
    throw new UnsupportedOperationException("partitions of an IndexTables table have no properties");
  }

  public Map loadPartitionMetadata(InternalRow ident) { return new HashMap(); }

  public boolean dropPartition(InternalRow ident) {
    requireWritable("ALTER TABLE DROP PARTITION");
    StructType by = partitionSchema();
    ArrayList tests = new ArrayList();
    for (int i = 0; i < by.length(); i++) {
      ArrayList sides = new ArrayList();
      ArrayList named = new ArrayList();
      named.add(by.apply(i).name());
      sides.add(Bridge.map(new Object[] {"node", "column", "path", named, "type", by.apply(i).dataType().sql().toLowerCase()}));
      sides.add(LogFileIndex.literal(ident.get(i, by.apply(i).dataType()), by.apply(i).dataType()));
      tests.add(Bridge.map(new Object[] {"node", "EqualNullSafe", "type", "boolean", "children", sides}));
    }
    Map done = Bridge.call("drop_partitions", Bridge.map(new Object[] {"path", path, "options", options, "conditions", tests}));
    return ((Number) done.get("files")).intValue() > 0;
  }

  public boolean truncatePartition(InternalRow ident) { return dropPartition(ident); }

  /** Every combination of values that some file has and that agrees with those given. */
  public InternalRow[] listPartitionIdentifiers(String[] names, InternalRow fixed) {
    StructType by = partitionSchema();
    List directories = ((LogFileIndex) relation("partitions", null).location()).everything();
    ArrayList identifiers = new ArrayList();
    for (int i = 0; i < directories.size(); i++) {
      InternalRow values = ((PartitionDirectory) directories.get(i)).values();
      boolean keep = true;
      for (int j = 0; keep && j < names.length; j++) {
        int at = by.fieldIndex(names[j]);
        Object have = values.get(at, by.apply(at).dataType());
        Object want = fixed.get(j, by.apply(at).dataType());
        keep = have == null ? want == null : have.equals(want);
      }
      if (keep) identifiers.add(values);
    }
    return (InternalRow[]) identifiers.toArray(new InternalRow[0]);
  }
}
