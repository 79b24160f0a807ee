package io.indextables;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.analysis.*;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog that is a directory: a namespace is a directory in it, and a table one with a transaction log. */
public class DirectoryCatalog implements StagingTableCatalog, SupportsNamespaces, TableNames {
  private static final String LOG = "_transaction_log";
  private String name;
  private Path root;
  private Map options = new HashMap();

  public void initialize(String name, CaseInsensitiveStringMap settings) {
    this.name = name;
    String warehouse = settings.get("warehouse");
    if (warehouse == null) throw new IllegalArgumentException("the catalog " + name + " needs spark.sql.catalog." + name + ".warehouse, the directory of its tables");
    root = new Path(warehouse);
    HashMap rest = new HashMap(settings.asCaseSensitiveMap());
    rest.remove("warehouse");
    options = rest;
  }

  public String name() { return name; }
  public Set capabilities() { return Definitions.capabilities(); }
  public String[] defaultNamespace() { return new String[0]; }

  private FileSystem files() throws IOException {
    return root.getFileSystem(Sessions.active().sessionState().newHadoopConf());
  }

  /** The warehouse with its scheme: a relative one is that of this JVM, wherever Python may have gone. */
  private Path warehouse() {
    try {
      return files().makeQualified(root);
    } catch (IOException e) {
      throw failed(e);
    }
  }

  private Path path(String[] namespace) {
    Path found = warehouse();
    for (int i = 0; i < namespace.length; i++) found = new Path(found, part(namespace[i]));
    return found;
  }

  private Path path(Identifier ident) { return new Path(path(ident.namespace()), part(ident.name())); }

  /** A name is one directory and nothing else, whatever it is made of. */
  private static String part(String name) {
    if (name.isEmpty() || name.indexOf('/') >= 0 || name.startsWith(".") || name.startsWith("_") || name.indexOf(':') >= 0) {
      throw new IllegalArgumentException("'" + name + "' cannot be the name of a directory, so neither of a table or namespace");
    }
    return name;
  }

  private static IllegalStateException failed(IOException e) { return new IllegalStateException(e.getMessage(), e); }

  private boolean isTable(Path path) {
    try {
      return files().exists(new Path(path, LOG));
    } catch (IOException e) {
      throw failed(e);
    }
  }

  private FileStatus[] below(Path path) throws IOException {
    try {
      return files().listStatus(path);
    } catch (FileNotFoundException none) {
      return new FileStatus[0];
    }
  }

  private ArrayList directories(Path path, boolean tables) {
    ArrayList found = new ArrayList();
    try {
      FileStatus[] all = below(path);
      for (int i = 0; i < all.length; i++) {
        String last = all[i].getPath().getName();
        if (all[i].isDirectory() && !last.startsWith("_") && !last.startsWith(".") && isTable(all[i].getPath()) == tables) found.add(last);
      }
    } catch (IOException e) {
      throw failed(e);
    }
    java.util.Collections.sort(found);
    return found;
  }

  // ---- namespaces ----

  public String[][] listNamespaces() {
    ArrayList found = directories(warehouse(), false);
    String[][] names = new String[found.size()][];
    for (int i = 0; i < names.length; i++) names[i] = new String[] {(String) found.get(i)};
    return names;
  }

  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length == 0) return listNamespaces();
    require(namespace);
    ArrayList found = directories(path(namespace), false);
    String[][] names = new String[found.size()][];
    for (int i = 0; i < names.length; i++) {
      names[i] = (String[]) java.util.Arrays.copyOf(namespace, namespace.length + 1);
      names[i][namespace.length] = (String) found.get(i);
    }
    return names;
  }

  public boolean namespaceExists(String[] namespace) {
    try {
      return namespace.length == 0 || (files().exists(path(namespace)) && !isTable(path(namespace)));
    } catch (IOException e) {
      throw failed(e);
    }
  }

  private void require(String[] namespace) throws NoSuchNamespaceException {
    if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
  }

  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    require(namespace);
    return Bridge.map(new Object[] {"location", path(namespace).toString()});
  }

  public void createNamespace(String[] namespace, Map metadata) throws NamespaceAlreadyExistsException {
    if (namespaceExists(namespace)) throw new NamespaceAlreadyExistsException(namespace);
    if (metadata.containsKey("location")) throw new UnsupportedOperationException("a namespace of " + name + " lies below its warehouse and can have no other location");
    try {
      files().mkdirs(path(namespace));
    } catch (IOException e) {
      throw failed(e);
    }
  }

  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw new UnsupportedOperationException("a namespace of " + name + " is a directory and has no properties");
  }

  public boolean dropNamespace(String[] namespace, boolean cascade) throws NoSuchNamespaceException, NonEmptyNamespaceException {
    require(namespace);
    try {
      if (!cascade && below(path(namespace)).length > 0) throw new NonEmptyNamespaceException(namespace);
      return files().delete(path(namespace), true);
    } catch (IOException e) {
      throw failed(e);
    }
  }

  // ---- tables ----

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    require(namespace);
    ArrayList found = directories(path(namespace), true);
    Identifier[] names = new Identifier[found.size()];
    for (int i = 0; i < names.length; i++) names[i] = Identifier.of(namespace, (String) found.get(i));
    return names;
  }

  public boolean exists(Identifier ident) { return isTable(path(ident)); }
  public boolean tableExists(Identifier ident) { return exists(ident); }

  public Table named(Identifier ident, Map when) {
    IndexTable table = new IndexTable(name + "." + ident, path(ident).toString(), options, when, false);
    table.managed = true;
    return table;
  }

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    return exists(ident) ? named(ident, new HashMap()) : Definitions.travelled(this, ident);
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    if (!exists(ident)) throw new NoSuchTableException(ident);
    return named(ident, Definitions.version(version));
  }

  public Table loadTable(Identifier ident, long micros) throws NoSuchTableException {
    if (!exists(ident)) throw new NoSuchTableException(ident);
    return named(ident, Definitions.instant(micros));
  }

  public String location(Identifier ident, HashMap entry) {
    if (entry.containsKey("location")) throw new UnsupportedOperationException("a table of " + name + " lies below its warehouse and can have no other LOCATION");
    String provider = (String) entry.get("provider");
    if (provider != null && !Definitions.ours(entry)) throw new UnsupportedOperationException("the catalog " + name + " holds tables of IndexTables only, not of " + provider);
    for (java.util.Iterator i = options.keySet().iterator(); i.hasNext();) {
      Object key = i.next();
      if (!entry.containsKey("option." + key)) entry.put("option." + key, options.get(key));
    }
    return path(ident).toString();
  }

  public void enter(Identifier ident, HashMap entry) { }

  public Table createTable(Identifier ident, Column[] columns, Transform[] by, Map properties) throws TableAlreadyExistsException, NoSuchNamespaceException {
    require(ident.namespace());
    return Definitions.create(this, ident, CatalogV2Util.v2ColumnsToStructType(columns), by, properties);
  }

  public Table createTable(Identifier ident, StructType schema, Transform[] by, Map properties) throws TableAlreadyExistsException, NoSuchNamespaceException {
    require(ident.namespace());
    return Definitions.create(this, ident, schema, by, properties);
  }

  // since 4.1
  public Table createTable(Identifier ident, TableInfo info) throws TableAlreadyExistsException, NoSuchNamespaceException {
    require(ident.namespace());
    return Definitions.create(this, ident, info);
  }

  public StagedTable stageCreate(Identifier ident, TableInfo info) throws TableAlreadyExistsException, NoSuchNamespaceException {
    Definitions.refuseConstraints(info, "CREATE TABLE ... AS");
    return stageCreate(ident, CatalogV2Util.v2ColumnsToStructType(info.columns()), info.partitions(), info.properties());
  }

  public StagedTable stageReplace(Identifier ident, TableInfo info) throws NoSuchNamespaceException, NoSuchTableException {
    Definitions.refuseConstraints(info, "REPLACE TABLE");
    return stageReplace(ident, CatalogV2Util.v2ColumnsToStructType(info.columns()), info.partitions(), info.properties());
  }

  public StagedTable stageCreateOrReplace(Identifier ident, TableInfo info) throws NoSuchNamespaceException {
    Definitions.refuseConstraints(info, "CREATE OR REPLACE TABLE");
    return stageCreateOrReplace(ident, CatalogV2Util.v2ColumnsToStructType(info.columns()), info.partitions(), info.properties());
  }

  public Table createTableLike(Identifier ident, TableInfo info, Table source) throws TableAlreadyExistsException, NoSuchNamespaceException {
    require(ident.namespace());
    return Definitions.like(this, ident, info, source);
  }
  // end

  public Table alterTable(Identifier ident, TableChange... changes) throws NoSuchTableException {
    Definitions.alter((VersionTable) loadTable(ident), changes);
    return loadTable(ident);
  }

  public boolean dropTable(Identifier ident) {
    try {
      return exists(ident) && files().delete(path(ident), true);
    } catch (IOException e) {
      throw failed(e);
    }
  }

  public boolean purgeTable(Identifier ident) { return dropTable(ident); }

  public void renameTable(Identifier from, Identifier given) throws NoSuchTableException, TableAlreadyExistsException {
    if (!exists(from)) throw new NoSuchTableException(from);
    Identifier to = within(given);
    try {
      if (files().exists(path(to))) throw new TableAlreadyExistsException(to);
      if (!files().rename(path(from), path(to))) throw new IllegalStateException(path(from) + " could not be renamed to " + path(to));
    } catch (IOException e) {
      throw failed(e);
    }
  }

  /** The new name of a table may be written with the name of this catalog, which Spark takes for a namespace. */
  private Identifier within(Identifier ident) {
    String[] namespace = ident.namespace();
    if (namespaceExists(namespace)) return ident;
    String[] rest = namespace[0].equals(name) ? (String[]) java.util.Arrays.copyOfRange(namespace, 1, namespace.length) : namespace;
    if (!namespaceExists(rest)) throw new IllegalArgumentException("there is no namespace " + String.join(".", rest) + " in " + name);
    return Identifier.of(rest, ident.name());
  }

  // ---- CREATE TABLE AS and REPLACE TABLE ----

  public StagedTable stageCreate(Identifier ident, StructType schema, Transform[] by, Map properties) throws TableAlreadyExistsException, NoSuchNamespaceException {
    require(ident.namespace());
    if (exists(ident)) throw new TableAlreadyExistsException(ident);
    return new Staged(this, ident, schema, by, new HashMap(properties), "create");
  }

  public StagedTable stageReplace(Identifier ident, StructType schema, Transform[] by, Map properties) throws NoSuchNamespaceException, NoSuchTableException {
    if (!exists(ident)) throw new NoSuchTableException(ident);
    return new Staged(this, ident, schema, by, new HashMap(properties), "replace");
  }

  public StagedTable stageCreateOrReplace(Identifier ident, StructType schema, Transform[] by, Map properties) throws NoSuchNamespaceException {
    require(ident.namespace());
    return new Staged(this, ident, schema, by, new HashMap(properties), "replace");
  }
}
