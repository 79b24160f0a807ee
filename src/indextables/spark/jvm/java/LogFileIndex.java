package io.indextables;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;

/**
 * The files of one table version, as Spark's Parquet reader sees them.
 *
 * Every query asks the planner, which lives in Python and prunes by the transaction log; nothing is kept between
 * queries but the counts shown by toString. Compiled by Janino: raw types and explicit casts throughout.
 */
public class LogFileIndex implements FileIndex {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING";

  private final String root;
  private final String identity;
  private final String label;
  private final StructType partitions;
  private final String token;
  private final java.util.function.Function planner;
  /** The files that are read, in JSON: paths in the log, each with its rows if not all are read. Null reads every live file. */
  private volatile String only = null;
  /** As many rows as are enough; -1 for all. */
  private final int limit;
  private volatile String counts = "";
  private volatile long size = -1L;

  public LogFileIndex(Map arguments) {
    root = (String) arguments.get("root");
    identity = (String) arguments.get("identity");
    label = (String) arguments.get("label");
    partitions = (StructType) arguments.get("partitions");
    token = (String) arguments.get("token");
    planner = (java.util.function.Function) arguments.get("planner");
    limit = -1;
  }

  private LogFileIndex(LogFileIndex all, int limit) {
    root = all.root;
    identity = all.identity + " limit " + limit;
    label = all.label;
    partitions = all.partitions;
    token = all.token;
    planner = all.planner;
    only = all.only;
    this.limit = limit;
  }

  /** The same version, of which any files with this many rows are enough. */
  LogFileIndex limited(int rows) { return new LogFileIndex(this, rows); }

  /** Whether not all files are meant, because of a limit or because a statement chooses them when it runs. */
  boolean isLimited() { return limit >= 0 || only != null; }

  /** Two paths on purpose: with one, Spark takes the relation for a writable directory and INSERT OVERWRITE deletes it. */
  public Seq rootPaths() {
    ArrayList paths = new ArrayList();
    paths.add(new Path(root));
    paths.add(new Path(root, "_transaction_log"));
    return CaseClasses.seq(paths);
  }

  public StructType partitionSchema() { return partitions; }

  public void refresh() { }

  /** Restricts what is read from now on; for the statement that this relation was made for. */
  public void restrict(String files) { only = files; }

  /** The identity of what is read, and the Python side's handle on it. */
  public String identity() { return identity; }

  public boolean equals(Object other) {
    return other instanceof LogFileIndex && identity.equals(((LogFileIndex) other).identity);
  }

  public int hashCode() { return identity.hashCode(); }

  public String toString() { return "LogFileIndex[" + label + counts + "]"; }

  /** Asked by the optimizer for join planning only, so it is counted when first wanted. */
  public long sizeInBytes() {
    if (size < 0) size = ask(Bridge.map(new Object[] {"call", "size"})).getLong();
    return size;
  }

  public String[] inputFiles() {
    ArrayList names = new ArrayList();
    List directories = plan(new ArrayList());
    for (int i = 0; i < directories.size(); i++) {
      scala.collection.Iterator files = ((PartitionDirectory) directories.get(i)).files().iterator();
      while (files.hasNext()) names.add(((FileStatusWithMetadata) files.next()).getPath().toUri().toString());
    }
    return (String[]) names.toArray(new String[0]);
  }

  /** Spark checks data filters again on the rows but trusts us with partition filters: Catalyst evaluates those here. */
  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    ArrayList filters = new ArrayList();
    addTrees(partitionFilters, filters);
    addTrees(dataFilters, filters);
    List directories = plan(filters);
    List exact = bind(partitionFilters);
    ArrayList matching = new ArrayList();
    for (int i = 0; i < directories.size(); i++) {
      InternalRow values = ((PartitionDirectory) directories.get(i)).values();
      boolean keep = true;
      for (int j = 0; keep && j < exact.size(); j++) keep = ((BasePredicate) exact.get(j)).eval(values);
      if (keep) matching.add(directories.get(i));
    }
    return CaseClasses.seq(matching);
  }

  /** Every file of the version, by partition. */
  List everything() { return plan(new ArrayList()); }

  // ---- the planner's answer: little endian, column by column ----

  private ByteBuffer ask(Map request) {
    request.put("token", token);
    if (only != null) request.put("only", only);
    String text;
    try {
      text = JSON.writeValueAsString(request);
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new IllegalStateException("a filter could not be sent to the planner of " + label, e);
    }
    ByteBuffer answer;
    try {
      answer = ByteBuffer.wrap((byte[]) planner.apply(text)).order(ByteOrder.LITTLE_ENDIAN);
    } catch (py4j.Py4JException e) {
      throw PythonProcess.lost("plan", e);
    }
    if (answer.get() != 0) {
      byte[] message = new byte[answer.getInt()];
      answer.get(message);
      throw new IllegalStateException(new String(message, StandardCharsets.UTF_8));
    }
    return answer;
  }

  private List plan(List filters) {
    Map request = Bridge.map(new Object[] {"call", "plan", "filters", filters});
    // Rows that a filter leaves out do not count for a limit.
    if (limit >= 0 && filters.isEmpty()) request.put("limit", Integer.valueOf(limit));
    ByteBuffer answer = ask(request);
    byte[] shown = new byte[answer.getInt()];
    answer.get(shown);
    long considered = answer.getLong();
    counts = ", kept " + answer.getLong() + " of " + considered + new String(shown, StandardCharsets.UTF_8);
    int directories = answer.getInt();
    Object[][] columns = new Object[partitions.length()][];
    for (int i = 0; i < columns.length; i++) columns[i] = column(answer, directories, partitions.apply(i).dataType());
    int[] lengths = new int[directories];
    int files = 0;
    for (int i = 0; i < directories; i++) {
      lengths[i] = answer.getInt();
      files += lengths[i];
    }
    byte[][] paths = texts(answer, files);
    long[] sizes = longs(answer, files);
    long[] modified = longs(answer, files);
    byte[][] deleted = answer.get() == 0 ? null : texts(answer, files);
    ArrayList listed = new ArrayList(directories);
    int next = 0;
    for (int i = 0; i < directories; i++) {
      Object[] values = new Object[columns.length];
      for (int j = 0; j < values.length; j++) values[j] = columns[j][i];
      ArrayList statuses = new ArrayList(lengths[i]);
      for (int k = 0; k < lengths[i]; k++, next++) {
        Path path = new Path(new String(paths[next], StandardCharsets.UTF_8));
        FileStatus status = new FileStatus(sizes[next], false, 0, 0, modified[next], path);
        HashMap more = new HashMap();
        if (deleted != null && deleted[next].length > 0) more.put(SplitFormat.DELETED, deleted[next]);
        statuses.add(FileStatusWithMetadata.apply(status, (scala.collection.immutable.Map) CaseClasses.scalaMap(more)));
      }
      listed.add(PartitionDirectory.apply(new GenericInternalRow(values), CaseClasses.seq(statuses)));
    }
    return listed;
  }

  /** Rows of keys and aggregates, if the log alone knows them; else null. The types are those of the columns. */
  List counted(List keys, List aggregates, List filters, List types) {
    if (isLimited()) return null;
    ByteBuffer answer = ask(Bridge.map(new Object[] {"call", "count", "keys", keys, "aggregates", aggregates, "filters", filters}));
    int rows = answer.getInt();
    if (rows < 0) return null;
    Object[][] columns = new Object[types.size()][];
    for (int i = 0; i < columns.length; i++) columns[i] = column(answer, rows, (DataType) types.get(i));
    ArrayList counted = new ArrayList(rows);
    for (int i = 0; i < rows; i++) {
      Object[] values = new Object[columns.length];
      for (int j = 0; j < values.length; j++) values[j] = columns[j][i];
      counted.add(new GenericInternalRow(values));
    }
    return counted;
  }

  /** The values of one partition column as Catalyst holds them inside: validity bytes, then the values. */
  private static Object[] column(ByteBuffer answer, int count, DataType type) {
    byte[] valid = new byte[count];
    answer.get(valid);
    Object[] values = new Object[count];
    if (type instanceof StringType || type instanceof BinaryType || type instanceof DecimalType) {
      byte[][] texts = texts(answer, count);
      for (int i = 0; i < count; i++) if (valid[i] != 0) values[i] = bytesValue(texts[i], type);
    } else if (type instanceof FloatType || type instanceof DoubleType) {
      for (int i = 0; i < count; i++) {
        double value = answer.getDouble();
        if (valid[i] == 0) continue;
        if (type instanceof FloatType) values[i] = Float.valueOf((float) value);
        else values[i] = Double.valueOf(value);
      }
    } else {
      long[] numbers = longs(answer, count);
      for (int i = 0; i < count; i++) if (valid[i] != 0) values[i] = longValue(numbers[i], type);
    }
    return values;
  }

  private static Object bytesValue(byte[] bytes, DataType type) {
    if (type instanceof StringType) return UTF8String.fromBytes(bytes);
    if (type instanceof BinaryType) return bytes;
    DecimalType decimal = (DecimalType) type;
    java.math.BigDecimal number = new java.math.BigDecimal(new String(bytes, StandardCharsets.US_ASCII));
    return Decimal.apply(number, decimal.precision(), decimal.scale());
  }

  private static Object longValue(long number, DataType type) {
    if (type instanceof BooleanType) return Boolean.valueOf(number != 0);
    if (type instanceof ByteType) return Byte.valueOf((byte) number);
    if (type instanceof ShortType) return Short.valueOf((short) number);
    if (type instanceof IntegerType || type instanceof DateType) return Integer.valueOf((int) number);
    if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) return Long.valueOf(number);
    throw new IllegalStateException("no partition values of type " + type.sql());
  }

  private static byte[][] texts(ByteBuffer answer, int count) {
    int[] lengths = new int[count];
    for (int i = 0; i < count; i++) lengths[i] = answer.getInt();
    byte[][] texts = new byte[count][];
    for (int i = 0; i < count; i++) {
      texts[i] = new byte[lengths[i]];
      answer.get(texts[i]);
    }
    return texts;
  }

  private static long[] longs(ByteBuffer answer, int count) {
    long[] numbers = new long[count];
    for (int i = 0; i < count; i++) numbers[i] = answer.getLong();
    return numbers;
  }

  // ---- filters as typed nodes: SQL text would lose instants, qualifiers and collations ----

  private static void addTrees(Seq filters, List trees) {
    for (scala.collection.Iterator i = filters.iterator(); i.hasNext();) trees.add(tree((Expression) i.next()));
  }

  static Map tree(Expression e) {
    if (e instanceof Literal) return literal(((Literal) e).value(), e.dataType());
    ArrayList path = new ArrayList();
    String type = columnPath(e, path);
    LinkedHashMap node = new LinkedHashMap();
    if (type != null) {
      node.put("node", "column");
      node.put("path", path);
      node.put("type", type);
      return node;
    }
    node.put("node", e.getClass().getSimpleName());
    node.put("type", name(e.dataType()));
    ArrayList children = new ArrayList();
    for (scala.collection.Iterator i = e.children().iterator(); i.hasNext();) children.add(tree((Expression) i.next()));
    node.put("children", children);
    if (e instanceof InSet) {
      DataType of = ((InSet) e).child().dataType();
      ArrayList values = new ArrayList();
      for (scala.collection.Iterator i = ((InSet) e).hset().iterator(); i.hasNext();) values.add(literal(i.next(), of));
      node.put("values", values);
    }
    if (e instanceof Cast && ((Cast) e).timeZoneId().isDefined()) node.put("zone", ((Cast) e).timeZoneId().get());
    if (e instanceof Like) node.put("escape", String.valueOf(((Like) e).escapeChar()));
    return node;
  }

  /** The names from the column down to a struct's field, and the type at the end; null when it is anything else. */
  private static String columnPath(Expression e, List path) {
    if (e instanceof AttributeReference) {
      AttributeReference attribute = (AttributeReference) e;
      path.add(attribute.name());
      if (hasLength(attribute)) return attribute.metadata().getString(CHAR_TYPE).toLowerCase();
      return name(attribute.dataType());
    }
    if (e instanceof GetStructField) {
      GetStructField field = (GetStructField) e;
      if (columnPath(field.child(), path) == null) return null;
      path.add(field.childSchema().apply(field.ordinal()).name());
      return name(field.dataType());
    }
    return null;
  }

  /** Whether a column is char(n) or varchar(n), which Spark holds as a string. */
  static boolean hasLength(Attribute column) { return column.metadata().contains(CHAR_TYPE); }

  static Map literal(Object value, DataType type) {
    LinkedHashMap node = new LinkedHashMap();
    Object sent = value;
    boolean isSent = true;
    if (value instanceof UTF8String) {
      isSent = ((UTF8String) value).isValid(); // since 4.0
      isSent = UTF8String.fromString(value.toString()).equals(value); // until 4.0
      sent = value.toString();
    } else if (value instanceof Decimal) {
      sent = ((Decimal) value).toJavaBigDecimal().toPlainString();
    } else if (value instanceof byte[]) {
      sent = java.util.Base64.getEncoder().encodeToString((byte[]) value);
    } else if (value instanceof Float || value instanceof Double) {
      double number = ((Number) value).doubleValue();
      if (Double.isNaN(number) || Double.isInfinite(number)) sent = Double.toString(number);
      else sent = Double.valueOf(number);
    } else {
      isSent = value == null || value instanceof Number || value instanceof Boolean;
    }
    node.put("node", isSent ? "literal" : "Opaque");
    node.put("type", name(type));
    if (isSent) node.put("value", sent);
    else node.put("children", new ArrayList());
    return node;
  }

  private static String name(DataType type) { return type.sql().toLowerCase(); }

  private List bind(Seq filters) {
    ArrayList predicates = new ArrayList();
    for (scala.collection.Iterator i = filters.iterator(); i.hasNext();) {
      Expression filter = (Expression) i.next();
      ArrayList attributes = new ArrayList();
      for (int j = 0; j < partitions.length(); j++) attributes.add(attribute(filter, partitions.apply(j)));
      Object bound = BindReferences.bindReference(filter, org.apache.spark.sql.catalyst.expressions.package$.MODULE$.AttributeSeq(CaseClasses.seq(attributes)), false);
      predicates.add(Predicate$.MODULE$.createInterpreted((Expression) bound));
    }
    return predicates;
  }

  private static Attribute attribute(Expression filter, StructField field) {
    for (scala.collection.Iterator i = filter.references().iterator(); i.hasNext();) {
      Attribute column = (Attribute) i.next();
      if (column.name().equalsIgnoreCase(field.name())) return column;
    }
    return org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttribute(field);
  }
}
