package io.indextables;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/** CREATE, REPLACE and ALTER TABLE: what a definition says, sent to Python, which writes it into the log. */
final class Definitions {
  /** What the name of a CHECK begins with among properties; no property of a statement does. */
  private static final String CHECK = "\0check.";
  static final String MANAGED = "is_managed_location";
  private static final java.util.regex.Pattern AT = java.util.regex.Pattern.compile("(.+)@v(\\d+)");

  private Definitions() { }

  static boolean ours(Map properties) { return "indextables".equalsIgnoreCase((String) properties.get("provider")); }

  /** What our tables can be created with; generated and identity columns are refused by Spark. */
  static Set capabilities() {
    HashSet capabilities = new HashSet();
    capabilities.add(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
    capabilities.add(TableCatalogCapability.SUPPORT_TABLE_CONSTRAINT); // since 4.1
    return capabilities;
  }

  static Map version(String version) { return Bridge.map(new Object[] {"versionAsOf", version}); }

  static Map instant(long micros) {
    java.time.Instant at = java.time.Instant.ofEpochSecond(Math.floorDiv(micros, 1000000L), Math.floorMod(micros, 1000000L) * 1000L);
    return Bridge.map(new Object[] {"timestampAsOf", at.toString()});
  }

  /** The table that `t@v3` means, for a name that is not itself taken. */
  static Table travelled(TableNames naming, Identifier ident) throws NoSuchTableException {
    java.util.regex.Matcher match = AT.matcher(ident.name());
    Identifier plain = match.matches() ? Identifier.of(ident.namespace(), match.group(1)) : null;
    if (plain == null || !naming.exists(plain)) throw new NoSuchTableException(ident);
    return naming.named(plain, version(match.group(2)));
  }

  static Table create(TableNames naming, Identifier ident, StructType schema, Transform[] by, Map properties) throws TableAlreadyExistsException {
    if (naming.exists(ident)) throw new TableAlreadyExistsException(ident);
    HashMap entry = new HashMap(properties);
    String path = naming.location(ident, entry);
    Bridge.call("create", request(path, schema, by, entry, "create"));
    naming.enter(ident, entry);
    return naming.named(ident, new HashMap());
  }

  // since 4.1
  /** A table with the CHECK constraints of its definition; every other kind is refused. */
  static Table create(TableNames naming, Identifier ident, TableInfo info) throws TableAlreadyExistsException {
    return create(naming, ident, CatalogV2Util.v2ColumnsToStructType(info.columns()), info.partitions(), checked(info));
  }

  private static HashMap checked(TableInfo info) {
    HashMap entry = new HashMap(info.properties());
    org.apache.spark.sql.connector.catalog.constraints.Constraint[] constraints = info.constraints();
    for (int i = 0; i < constraints.length; i++) {
      boolean isCheck = constraints[i] instanceof org.apache.spark.sql.connector.catalog.constraints.Check;
      if (!isCheck || !constraints[i].enforced()) throw new UnsupportedOperationException("IndexTables keeps CHECK constraints that are enforced; it cannot keep " + constraints[i].toDDL());
      // Where the statement has no name for it, Spark makes one of the table's, which may be a path.
      String name = constraints[i].name().replaceFirst("(?s)^.*\\W(?=\\w+_chk_[0-9a-f]+$)", "");
      entry.put(CHECK + name, ((org.apache.spark.sql.connector.catalog.constraints.Check) constraints[i]).predicateSql());
    }
    return entry;
  }

  /** Refuses constraints where a definition cannot have them. */
  static void refuseConstraints(TableInfo info, String where) {
    if (info.constraints().length > 0) throw new UnsupportedOperationException(where + " cannot have constraints: leave them out, and add them to a table of IndexTables with ALTER TABLE ... ADD CONSTRAINT name CHECK (condition)");
  }

  /** A table with the columns, partitions and settings of another, and none of its rows. */
  static Table like(TableNames naming, Identifier ident, TableInfo info, Table source) throws TableAlreadyExistsException {
    HashMap entry = new HashMap(info.properties());
    if (source instanceof VersionTable && !((VersionTable) source).readOnly) {
      Map described = ((VersionTable) source).described;
      for (Iterator i = described.keySet().iterator(); i.hasNext();) {
        Object key = i.next();
        boolean isCheck = ((String) key).startsWith("indextables.constraints.");
        Object kept = isCheck ? CHECK + ((String) key).substring("indextables.constraints.".length()) : key;
        if (!entry.containsKey(kept)) entry.put(kept, described.get(key));
      }
    }
    return create(naming, ident, CatalogV2Util.v2ColumnsToStructType(info.columns()), info.partitions(), entry);
  }
  // end

  static Map request(String path, StructType schema, Transform[] by, Map entry, String kind) {
    return Bridge.map(new Object[] {
      "path", path, "schema", schema.json(), "partitions", names(by), "properties", settings(entry), "options", options(entry),
      "checks", checks(entry), "comment", entry.get("comment"), "kind", kind, "managed", Boolean.valueOf("true".equals(entry.get(MANAGED)))});
  }

  private static Map checks(Map entry) {
    HashMap checks = new HashMap();
    for (Iterator i = entry.keySet().iterator(); i.hasNext();) {
      String key = (String) i.next();
      if (key.startsWith(CHECK)) checks.put(key.substring(CHECK.length()), entry.get(key));
    }
    return checks;
  }

  /** TBLPROPERTIES, without what Spark keeps in the same map. */
  static Map settings(Map entry) {
    HashMap properties = new HashMap();
    for (Iterator i = entry.keySet().iterator(); i.hasNext();) {
      String key = (String) i.next();
      boolean reserved = key.startsWith(CHECK) || CatalogV2Util.TABLE_RESERVED_PROPERTIES().contains(key) || key.equals(MANAGED);
      if (!reserved && !key.startsWith("option.") && !entry.containsKey("option." + key)) properties.put(key, entry.get(key));
    }
    return properties;
  }

  /** OPTIONS, which Spark marks with a prefix. */
  static Map options(Map entry) {
    HashMap options = new HashMap();
    for (Iterator i = entry.keySet().iterator(); i.hasNext();) {
      String key = (String) i.next();
      if (key.startsWith("option.") && !key.equals("option.path")) options.put(key.substring(7), entry.get(key));
    }
    return options;
  }

  static ArrayList names(Transform[] by) {
    ArrayList names = new ArrayList();
    for (int i = 0; i < by.length; i++) {
      if (!"identity".equals(by[i].name())) {
        if (by[i].name().equals("cluster_by")) {
          throw new IllegalArgumentException("CLUSTER BY is not supported by IndexTables; use PARTITIONED BY, or sort the rows before they are written");
        }
        throw new IllegalArgumentException("PARTITIONED BY " + by[i].describe() + " is not supported by IndexTables; name a column");
      }
      names.add(by[i].references()[0].fieldNames()[0]);
    }
    return names;
  }

  static void alter(VersionTable table, TableChange[] changes) {
    table.requireWritable("ALTER TABLE");
    ArrayList sent = new ArrayList();
    for (int i = 0; i < changes.length; i++) sent.add(change(changes[i]));
    Bridge.call("alter", Bridge.map(new Object[] {"path", table.path, "options", table.options, "changes", sent}));
  }

  /** The column before a position; empty for the first one, null for none. */
  private static String position(TableChange.ColumnPosition position) {
    if (position == null) return null;
    return position instanceof TableChange.After ? ((TableChange.After) position).column() : "";
  }

  private static Map change(TableChange change) {
    String kind = change.getClass().getSimpleName();
    HashMap sent = new HashMap();
    sent.put("kind", kind);
    if (change instanceof TableChange.SetProperty) {
      sent.put("key", ((TableChange.SetProperty) change).property());
      sent.put("value", ((TableChange.SetProperty) change).value());
    } else if (change instanceof TableChange.RemoveProperty) {
      sent.put("key", ((TableChange.RemoveProperty) change).property());
    } else if (change instanceof TableChange.ColumnChange) {
      sent.put("column", java.util.Arrays.asList(((TableChange.ColumnChange) change).fieldNames()));
    }
    if (change instanceof TableChange.AddColumn) {
      TableChange.AddColumn add = (TableChange.AddColumn) change;
      sent.put("type", add.dataType().json());
      sent.put("nullable", Boolean.valueOf(add.isNullable()));
      sent.put("comment", add.comment());
      sent.put("position", position(add.position()));
      sent.put("defaulted", Boolean.valueOf(add.defaultValue() != null));
    } else if (change instanceof TableChange.RenameColumn) {
      sent.put("name", ((TableChange.RenameColumn) change).newName());
    } else if (change instanceof TableChange.DeleteColumn) {
      sent.put("if_exists", ((TableChange.DeleteColumn) change).ifExists());
    } else if (change instanceof TableChange.UpdateColumnPosition) {
      sent.put("position", position(((TableChange.UpdateColumnPosition) change).position()));
    } else if (change instanceof TableChange.UpdateColumnType) {
      sent.put("type", ((TableChange.UpdateColumnType) change).newDataType().json());
    } else if (change instanceof TableChange.UpdateColumnNullability) {
      sent.put("nullable", Boolean.valueOf(((TableChange.UpdateColumnNullability) change).nullable()));
    } else if (change instanceof TableChange.UpdateColumnComment) {
      sent.put("comment", ((TableChange.UpdateColumnComment) change).newComment());
    } else if (change instanceof TableChange.UpdateColumnDefaultValue) {
      sent.put("value", ((TableChange.UpdateColumnDefaultValue) change).newDefaultValue());
    }
    return sent;
  }
}
