package io.indextables;

import java.util.ArrayList;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat$;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.Seq;

/**
 * Parquet, of whose files some rows may be deleted, and whose columns may have other names than the table's.
 *
 * LogFileIndex gives each such file its deleted rows; they are left out as Spark's own reader returns rows or batches,
 * by the number that it has for every row. Files without them are read as ever. Compiled by Janino: raw types and
 * explicit casts throughout.
 */
public class SplitFormat extends ParquetFileFormat {
  /** Under which name a file has its deleted rows. */
  static final String DELETED = "indextables.deleted";
  /** What an option of the relation begins with that gives the stored name of the column it ends with. */
  static final String STORED = "indextables.stored.";
  /** The option that is there where columns have stored names. */
  static final String MAPPED = "indextables.mapped";

  public scala.Function1 buildReaderWithPartitionValues(SparkSession session, StructType data, StructType partitions,
      StructType required, Seq filters, scala.collection.immutable.Map options, Configuration configuration) {
    java.util.Map named = CaseClasses.java(options);
    data = stored(data, named);
    required = stored(required, named);
    filters = stored(filters, named);
    String number = ParquetFileFormat$.MODULE$.ROW_INDEX_TEMPORARY_COLUMN_NAME();
    int at = -1;
    for (int i = 0; i < required.length(); i++) if (required.apply(i).name().equals(number)) at = i;
    boolean isAdded = at < 0;
    StructType numbered = isAdded ? required.add(number, DataTypes.LongType, true) : required;
    // Parquet's reader puts the columns it is to read into the configuration, so each gets its own.
    scala.Function1 plain = super.buildReaderWithPartitionValues(session, data, partitions, required, filters, options, new Configuration(configuration));
    scala.Function1 withNumbers = isAdded
        ? super.buildReaderWithPartitionValues(session, data, partitions, numbered, filters, options, new Configuration(configuration))
        : plain;
    ArrayList fields = new ArrayList();
    for (int i = 0; i < numbered.length(); i++) fields.add(numbered.apply(i));
    for (int i = 0; i < partitions.length(); i++) fields.add(partitions.apply(i));
    StructField[] all = (StructField[]) fields.toArray(new StructField[0]);
    return new Reader(plain, withNumbers, all, isAdded ? required.length() : at, isAdded);
  }

  /** The columns under the names that the files have; rows go by the places of their columns alone. */
  private static StructType stored(StructType columns, java.util.Map named) {
    ArrayList fields = new ArrayList();
    for (int i = 0; i < columns.length(); i++) {
      StructField field = columns.apply(i);
      Object name = named.get(STORED + field.name());
      fields.add(name == null ? field : new StructField((String) name, field.dataType(), field.nullable(), field.metadata()));
    }
    return new StructType((StructField[]) fields.toArray(new StructField[0]));
  }

  /** The filters for which Parquet's statistics can be asked, under the names that the files have. Spark repeats every filter. */
  private static Seq stored(Seq filters, java.util.Map named) {
    if (named.get(MAPPED) == null) return filters;
    ArrayList left = new ArrayList();
    for (int i = 0; i < filters.length(); i++) {
      Filter filter = stored((Filter) filters.apply(i), named);
      if (filter != null) left.add(filter);
    }
    return CaseClasses.seq(left);
  }

  /** A filter under stored names; null if a part of it is about anything but a column by its plain name. */
  private static Filter stored(Filter filter, java.util.Map named) {
    scala.Product product = (scala.Product) filter;
    Object[] values = new Object[product.productArity()];
    for (int i = 0; i < values.length; i++) {
      values[i] = product.productElement(i);
      if (values[i] instanceof Filter) values[i] = stored((Filter) values[i], named);
      // The first value of every filter that is not made of others is its column.
      else if (i == 0) values[i] = storedName((String) values[i], named);
      if (values[i] == null && (i == 0 || product.productElement(i) instanceof Filter)) return null;
    }
    try {
      return (Filter) filter.getClass().getConstructors()[0].newInstance(values);
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  /** The stored name of a column as filters have it: in backticks unless it is a plain word. Null for a field inside a column. */
  private static String storedName(String column, java.util.Map named) {
    boolean isQuoted = column.length() > 1 && column.startsWith("`") && column.endsWith("`");
    if (!isQuoted && column.indexOf('.') >= 0) return null;
    Object name = named.get(STORED + (isQuoted ? column.substring(1, column.length() - 1).replace("``", "`") : column));
    if (name == null || ((String) name).matches("[a-zA-Z_][a-zA-Z0-9_]*")) return (String) name;
    return "`" + ((String) name).replace("`", "``") + "`";
  }

  /** Not those of Parquet's reader alone: code that is generated for them would not take others. */
  public scala.Option vectorTypes(StructType required, StructType partitions, org.apache.spark.sql.internal.SQLConf conf) {
    return scala.Option.apply(null);
  }

  /** Reads one file; sent to the executors. */
  public static class Reader extends scala.runtime.AbstractFunction1 implements java.io.Serializable {
    private final scala.Function1 plain;
    private final scala.Function1 withNumbers;
    private final StructField[] fields;
    private final int at;
    private final boolean isAdded;

    Reader(scala.Function1 plain, scala.Function1 withNumbers, StructField[] fields, int at, boolean isAdded) {
      this.plain = plain;
      this.withNumbers = withNumbers;
      this.fields = fields;
      this.at = at;
      this.isAdded = isAdded;
    }

    public Object apply(Object argument) {
      PartitionedFile file = (PartitionedFile) argument;
      Object deleted = CaseClasses.java(file.otherConstantMetadataColumnValues()).get(DELETED);
      if (deleted == null) return plain.apply(file);
      Live live = new Live((scala.collection.Iterator) withNumbers.apply(file), new Deleted((byte[]) deleted), fields, at, isAdded);
      return scala.collection.JavaConverters.asScalaIteratorConverter(live).asScala();
    }
  }

  /** A set of row numbers: a list of them, in order, or a bit for each; or all rows but those of a list. */
  static class Deleted {
    private static final int BITS = 1;
    private static final int ALL_BUT = 2;
    private final byte[] bytes;

    /** The first byte tells which; the numbers of a list are little endian, of four bytes each. */
    Deleted(byte[] bytes) { this.bytes = bytes; }

    boolean has(long row) {
      if (bytes[0] == BITS) {
        long place = 1 + (row >> 3);
        return place < bytes.length && (bytes[(int) place] >> (int) (row & 7) & 1) != 0;
      }
      return isListed(row) != (bytes[0] == ALL_BUT);
    }

    private boolean isListed(long row) {
      int low = 0;
      int high = (bytes.length - 1) / 4 - 1;
      while (low <= high) {
        int middle = (low + high) >>> 1;
        long found = number(middle);
        if (found == row) return true;
        if (found < row) low = middle + 1;
        else high = middle - 1;
      }
      return false;
    }

    private long number(int at) {
      int first = 1 + 4 * at;
      return (bytes[first] & 255L) | (bytes[first + 1] & 255L) << 8 | (bytes[first + 2] & 255L) << 16 | (bytes[first + 3] & 255L) << 24;
    }
  }

  /** What a reader returns, rows or batches of them, without the deleted ones. */
  static class Live implements java.util.Iterator {
    private final scala.collection.Iterator rows;
    private final Deleted deleted;
    private final int at;
    private final boolean isAdded;
    private final UnsafeProjection projection;
    private Object next = null;

    Live(scala.collection.Iterator rows, Deleted deleted, StructField[] fields, int at, boolean isAdded) {
      this.rows = rows;
      this.deleted = deleted;
      this.at = at;
      this.isAdded = isAdded;
      ArrayList shown = new ArrayList();
      for (int i = 0; i < fields.length; i++) {
        if (!isAdded || i != at) shown.add(new BoundReference(i, fields[i].dataType(), true));
      }
      projection = isAdded ? UnsafeProjection$.MODULE$.create(CaseClasses.seq(shown)) : null;
    }

    public boolean hasNext() {
      while (next == null && rows.hasNext()) {
        Object read = rows.next();
        if (read instanceof ColumnarBatch) {
          next = batch((ColumnarBatch) read);
        } else {
          InternalRow row = (InternalRow) read;
          if (!deleted.has(row.getLong(at))) next = isAdded ? projection.apply(row) : row;
        }
      }
      return next != null;
    }

    public Object next() {
      if (!hasNext()) throw new java.util.NoSuchElementException();
      Object found = next;
      next = null;
      return found;
    }

    public void remove() { throw new UnsupportedOperationException(); }

    /** The live rows of a batch; null if there are none. */
    private ColumnarBatch batch(ColumnarBatch batch) {
      ColumnVector numbers = batch.column(at);
      int[] live = new int[batch.numRows()];
      int count = 0;
      for (int i = 0; i < live.length; i++) if (!deleted.has(numbers.getLong(i))) live[count++] = i;
      if (count == 0) return null;
      boolean isWhole = count == live.length;
      int[] rows = java.util.Arrays.copyOf(live, count);
      ArrayList columns = new ArrayList();
      for (int i = 0; i < batch.numCols(); i++) {
        if (isAdded && i == at) continue;
        if (isWhole) columns.add(batch.column(i));
        else columns.add(new Chosen(batch.column(i), rows));
      }
      return new ColumnarBatch((ColumnVector[]) columns.toArray(new ColumnVector[0]), count);
    }
  }

  /** Some rows of a column. */
  static class Chosen extends ColumnVector {
    private final ColumnVector column;
    private final int[] rows;

    Chosen(ColumnVector column, int[] rows) {
      super(column.dataType());
      this.column = column;
      this.rows = rows;
    }

    /** The batch that was read closes it. */
    public void close() { }

    public boolean hasNull() { return column.hasNull(); }

    public int numNulls() {
      int nulls = 0;
      for (int i = 0; i < rows.length; i++) if (column.isNullAt(rows[i])) nulls++;
      return nulls;
    }

    public boolean isNullAt(int row) { return column.isNullAt(rows[row]); }

    public boolean getBoolean(int row) { return column.getBoolean(rows[row]); }

    public byte getByte(int row) { return column.getByte(rows[row]); }

    public short getShort(int row) { return column.getShort(rows[row]); }

    public int getInt(int row) { return column.getInt(rows[row]); }

    public long getLong(int row) { return column.getLong(rows[row]); }

    public float getFloat(int row) { return column.getFloat(rows[row]); }

    public double getDouble(int row) { return column.getDouble(rows[row]); }

    public org.apache.spark.sql.vectorized.ColumnarArray getArray(int row) { return column.getArray(rows[row]); }

    public org.apache.spark.sql.vectorized.ColumnarMap getMap(int row) { return column.getMap(rows[row]); }

    public org.apache.spark.sql.types.Decimal getDecimal(int row, int precision, int scale) {
      return column.getDecimal(rows[row], precision, scale);
    }

    public org.apache.spark.unsafe.types.UTF8String getUTF8String(int row) { return column.getUTF8String(rows[row]); }

    public byte[] getBinary(int row) { return column.getBinary(rows[row]); }

    public ColumnVector getChild(int at) { return new Chosen(column.getChild(at), rows); }
  }
}
