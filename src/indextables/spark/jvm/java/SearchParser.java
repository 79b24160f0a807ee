package io.indextables;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParameterContext; // since 4.1
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkSqlParser;

/**
 * The session's parser, which knows our statements and `column indexquery 'words'`.
 *
 * A statement of ours becomes a `Statement`. A text that may hold a search is first spelled as SQL by Python, where the operator becomes a call of a function; the
 * parser that was there before reads the result, and every text without a search as it is.
 */
public class SearchParser extends SparkSqlParser {
  private static final java.util.regex.Pattern SEARCH =
    java.util.regex.Pattern.compile("indexquery|textsearch|fieldmatch", java.util.regex.Pattern.CASE_INSENSITIVE);

  private final ParserInterface beneath;

  SearchParser(ParserInterface beneath) { this.beneath = beneath; }

  /** Puts it into a session that is running: new ones get theirs from the extensions. */
  public static void teach(org.apache.spark.sql.classic.SparkSession session) {
    ParserInterface current = session.sessionState().sqlParser();
    if (current instanceof SearchParser) return;
    SearchParser parser = new SearchParser(current);
    put(session.sessionState(), "sqlParser", parser);
    // Definitions of views are read by the catalog.
    put(session.sessionState().catalog(), "parser", parser);
  }

  static void put(Object owner, String field, Object value) {
    for (Class type = owner.getClass(); type != null; type = type.getSuperclass()) {
      try {
        java.lang.reflect.Field declared = type.getDeclaredField(field);
        declared.setAccessible(true);
        declared.set(owner, value);
        return;
      } catch (NoSuchFieldException above) {
        // A subclass, as the one for Hive, has it from its parent.
      } catch (IllegalAccessException e) {
        throw new IllegalStateException(e);
      }
    }
    throw new IllegalStateException("this Spark keeps no " + field + " in " + owner.getClass().getName());
  }

  private static String spelled(String text, String what) {
    if (text == null || !SEARCH.matcher(text).find()) return text;
    return (String) Bridge.call("spelled", Bridge.map(new Object[] {"text", text, "what", what})).get("text");
  }

  public LogicalPlan parsePlan(String text) {
    LogicalPlan statement = Statement.of(text);
    if (statement != null) return statement;
    try {
      return beneath.parsePlan(spelled(text, "statement"));
    } catch (ParseException e) {
      throw unchanged(e);
    }
  }

  // since 4.1
  public LogicalPlan parsePlanWithParameters(String text, ParameterContext parameters) {
    LogicalPlan statement = Statement.of(text);
    if (statement != null) return statement;
    try {
      return beneath.parsePlanWithParameters(spelled(text, "statement"), parameters);
    } catch (ParseException e) {
      throw unchanged(e);
    }
  }
  // end

  public LogicalPlan parseQuery(String text) {
    try {
      return beneath.parseQuery(spelled(text, "statement"));
    } catch (ParseException e) {
      throw unchanged(e);
    }
  }

  public Expression parseExpression(String text) {
    try {
      return beneath.parseExpression(spelled(text, "expression"));
    } catch (ParseException e) {
      throw unchanged(e);
    }
  }

  /** Throws it: the methods above override some that declare no exception, and Scala's callers expect this one. */
  private static RuntimeException unchanged(ParseException e) {
    org.apache.spark.unsafe.Platform.throwException(e);
    return new IllegalStateException(e);
  }

  /** For `injectParser`. */
  public static class Made extends scala.runtime.AbstractFunction2 {
    public Object apply(Object session, Object parser) {
      return parser instanceof SearchParser ? parser : new SearchParser((ParserInterface) parser);
    }
  }
}
