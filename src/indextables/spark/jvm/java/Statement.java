package io.indextables;

import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * A statement of ours, such as REPAIR INDEXFILES TRANSACTION LOG.
 *
 * Python says when it is parsed whether it is ours and which columns it has, and gives the rows when it runs. Its first words
 * decide whether Python is asked at all.
 */
public class Statement extends OwnCommand {
  private static final Pattern FIRST = Pattern.compile(
    "(REPAIR INDEXFILES|MERGE SPLITS|PURGE ROWS|REORG TABLE|([A-Z]+|WAIT FOR|DELETE FROM) INDEXTABLES?|OPTIMIZE|VACUUM|RESTORE|FSCK|ANALYZE|ALTER TABLE"
    + "|SHOW PARTITIONS|DESC(RIBE)? (HISTORY|DETAIL)|CREATE (OR REPLACE )?(GLOBAL )?TEMP(ORARY)? VIEW"
    + "|(CREATE|DROP|REFRESH) INDEX|SHOW INDEXES) .*"
    // Spark shows the properties of what it can name; a path in quotes it cannot.
    + "|SHOW TBLPROPERTIES ");
  private static final Pattern SPARKS = Pattern.compile("(SHOW PARTITIONS|ANALYZE TABLE) \\w.*|CREATE (?!INDEX ).*");
  private static final Pattern MARK = Pattern.compile("\\b(FOR\\s+SKIPPING|USING\\s.*indextables)", Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
  private static final Pattern CONSTRAINT = Pattern.compile(
    "\\b((ADD|DROP)\\s+(CONSTRAINT|CHECK|PRIMARY|UNIQUE|FOREIGN)|SET\\s+NOT\\s+NULL)\\b", Pattern.CASE_INSENSITIVE);
  private static final int WORDS = 6;

  private final String text;
  private final String schema;

  public Statement(String text, String schema) {
    super((StructType) DataType.fromJson(schema));
    this.text = text;
    this.schema = schema;
  }

  /** The statement, if it is ours; null for every other text. */
  static LogicalPlan of(String text) {
    String words = firstWords(text);
    if (!FIRST.matcher(words).matches()) return null;
    if (words.startsWith("ALTER") && !CONSTRAINT.matcher(text).find()) return null;
    // Only a view of ours makes these ours, and there is none where nobody has asked Python for it.
    if (SPARKS.matcher(words).matches() && !MARK.matcher(text).find() && (words.startsWith("CREATE") || Bridge.side() == null)) return null;
    Map answer = Bridge.call("statement", Bridge.map(new Object[] {"text", text}));
    String schema = (String) answer.get("schema");
    return schema == null ? null : new Statement(text, schema);
  }

  /** The first words in capitals, each with a space behind it; comments count as spaces, and what is no word ends them. */
  static String firstWords(String text) {
    StringBuilder words = new StringBuilder();
    int at = 0;
    for (int count = 0; count < WORDS; count++) {
      at = behindSpace(text, at);
      int start = at;
      while (at < text.length() && (Character.isLetterOrDigit(text.charAt(at)) || text.charAt(at) == '_')) at++;
      if (at == start) break;
      words.append(text.substring(start, at).toUpperCase(java.util.Locale.ROOT)).append(' ');
    }
    return words.toString();
  }

  /** Where the next character stands that is neither space nor comment; block comments nest. */
  private static int behindSpace(String text, int from) {
    int at = from;
    int depth = 0;
    while (at < text.length()) {
      if (text.startsWith("/*", at)) {
        depth++;
        at += 2;
      } else if (depth > 0) {
        boolean closed = text.startsWith("*/", at);
        if (closed) depth--;
        at += closed ? 2 : 1;
      } else if (text.startsWith("--", at)) {
        while (at < text.length() && text.charAt(at) != '\n') at++;
      } else if (Character.isWhitespace(text.charAt(at))) {
        at++;
      } else {
        break;
      }
    }
    return at;
  }

  public scala.collection.immutable.Seq run(SparkSession session) {
    HashMap objects = new HashMap();
    Bridge.call("run_statement", Bridge.map(new Object[] {"text", text}), objects);
    Object rows = objects.get("rows");
    return CaseClasses.seq(rows == null ? new java.util.ArrayList() : ((Dataset) rows).collectAsList());
  }

  public Object productElement(int at) { return at == 0 ? text : schema; }
  public scala.collection.Iterator stringArgs() { return CaseClasses.seq(java.util.Collections.singletonList(text)).iterator(); }
}
