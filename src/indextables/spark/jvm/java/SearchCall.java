package io.indextables;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry$;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A search as it stands in a plan: a call that Spark moves around like any other, until `SearchRule` puts its answer there.
 *
 * Its arguments are the column (for all columns, a struct of them) and the query. `SearchBinding` adds which column of which
 * relation it was about when it was first seen. Spark copies conditions from one side of an equality to the other, and a copy is told by that.
 */
final class SearchCall {
  static final String SEARCH = "indexquery";
  static final String ALL = "indexqueryall";
  static final String SCORE = "indexscore";
  static final String HIGHLIGHT = "indexhighlight";

  private SearchCall() { }

  /** Makes the functions known: to a running session by its registries, to views and later sessions as built-in ones. */
  static void register(FunctionRegistry session, TableFunctionRegistry ofTables) {
    register(session, SEARCH, new Builder(SEARCH, DataTypes.BooleanType, 2));
    register(session, ALL, new Builder(ALL, DataTypes.BooleanType, 2));
    register(session, SCORE, new Builder(SCORE, DataTypes.FloatType, 1));
    register(session, HIGHLIGHT, new Builder(HIGHLIGHT, DataTypes.StringType, 2));
    String[] names = new String[] {"search", "isearch", SearchFunction.OWN + "search", SearchFunction.OWN + "isearch"};
    for (int i = 0; i < names.length; i++) register(session, names[i], new SearchFunction.Builder(names[i]));
    ExpressionInfo info = new ExpressionInfo(ChangesFunction.class.getName(), ChangesFunction.NAME);
    register(TableFunctionRegistry$.MODULE$.builtin(), "range", ChangesFunction.NAME, info, new ChangesFunction());
    if (ofTables != null) register(ofTables, "range", ChangesFunction.NAME, info, new ChangesFunction());
  }

  private static void register(FunctionRegistry session, String name, scala.Function1 builder) {
    ExpressionInfo info = new ExpressionInfo(ScalaUDF.class.getName(), name);
    FunctionRegistry builtin = FunctionRegistry$.MODULE$.builtin();
    register(builtin, "upper", name, info, builder);
    if (session != null && session != builtin) register(session, "upper", name, info, builder);
  }

  /** Under a name like that of Spark's own functions, which some versions qualify. */
  private static void register(FunctionRegistryBase registry, String own, String name, ExpressionInfo info, scala.Function1 builder) {
    for (scala.collection.Iterator i = registry.listFunction().iterator(); i.hasNext();) {
      FunctionIdentifier like = (FunctionIdentifier) i.next();
      if (!like.funcName().equals(own)) continue;
      FunctionIdentifier identifier = (FunctionIdentifier) CaseClasses.copy(like, new Object[] {"funcName", name});
      if (!registry.functionExists(identifier)) registry.registerFunction(identifier, info, builder);
      return;
    }
  }

  static boolean is(Object e) { return e instanceof ScalaUDF && ((ScalaUDF) e).function() instanceof Unanswered; }

  static String kind(Expression mark) { return (String) ((ScalaUDF) mark).udfName().get(); }

  static Expression column(Expression mark) { return (Expression) mark.children().apply(0); }

  /** The words; null where they are not known when a statement is planned. */
  static String query(Expression mark) {
    Object query = argument(mark, 1);
    Object value = query instanceof Literal ? ((Literal) query).value() : null;
    return value == null ? null : value.toString();
  }

  static String first(Expression mark) { return ((Literal) argument(mark, 2)).value().toString(); }

  /** An argument; an empty text for one that was not given. */
  private static Expression argument(Expression mark, int at) { return at < mark.children().size() ? (Expression) mark.children().apply(at) : text(""); }

  /** The columns a search is about, in a text that tells them from any others. */
  static String about(Expression mark) {
    StringBuilder text = new StringBuilder();
    List columns = attributes(mark);
    for (int i = 0; i < columns.size(); i++) text.append(' ').append(((Attribute) columns.get(i)).exprId().id());
    return text.toString();
  }

  static String key(Expression mark) { return kind(mark) + about(mark) + "\n" + query(mark); }

  static List attributes(Expression mark) {
    ArrayList columns = new ArrayList();
    Expression column = column(mark);
    if (column instanceof Attribute) columns.add(column);
    else if (column instanceof CreateNamedStruct) for (scala.collection.Iterator i = column.references().iterator(); i.hasNext();) columns.add(i.next());
    return columns;
  }

  static Expression with(Expression mark, Expression column, String first) {
    ArrayList children = new ArrayList();
    children.add(column);
    for (int i = 1; first == null && i < mark.children().size(); i++) children.add(mark.children().apply(i));
    if (first == null) return (Expression) mark.withNewChildren(CaseClasses.seq(children));
    children.add(argument(mark, 1));
    children.add(text(first));
    return (Expression) CaseClasses.copy(mark, new Object[] {"function", new Bound(), "children", CaseClasses.seq(children)});
  }

  /** All searches inside some expressions. */
  static List in(scala.collection.Iterable expressions) {
    ArrayList calls = new ArrayList();
    for (scala.collection.Iterator i = expressions.iterator(); i.hasNext();) collect((Expression) i.next(), calls);
    return calls;
  }

  private static void collect(Expression e, List into) {
    if (is(e)) {
      into.add(e);
      return;
    }
    for (scala.collection.Iterator i = e.children().iterator(); i.hasNext();) collect((Expression) i.next(), into);
  }

  /** An expression with the answers of some searches, which are found by their keys, in their places. */
  static Expression answered(Expression e, Map answers) {
    if (is(e)) {
      Object answer = answers.get(key(e));
      return answer == null ? e : (Expression) answer;
    }
    ArrayList children = new ArrayList();
    boolean changed = false;
    for (scala.collection.Iterator i = e.children().iterator(); i.hasNext();) {
      Expression child = (Expression) i.next();
      Expression now = answered(child, answers);
      changed = changed || now != child;
      children.add(now);
    }
    return changed ? (Expression) e.withNewChildren(CaseClasses.seq(children)) : e;
  }

  private static Literal text(String value) { return new Literal(UTF8String.fromString(value), DataTypes.StringType); }

  /** What stands in the plan where nobody answered. */
  public interface Unanswered { }

  /** NULL for NULL, which is all that can be said without an index. */
  private static Object unanswered(Object column) {
    if (column == null) return null;
    throw new IllegalStateException("indexquery searches columns of IndexTables tables; this one is computed, or comes from elsewhere");
  }

  /** A call with a column alone. */
  public static class OfColumn extends scala.runtime.AbstractFunction1 implements Unanswered, java.io.Serializable {
    public Object apply(Object column) { return unanswered(column); }
    public boolean equals(Object other) { return other instanceof OfColumn; }
    public int hashCode() { return 17; }
  }

  /** A call with a column and a query. */
  public static class OfQuery extends scala.runtime.AbstractFunction2 implements Unanswered, java.io.Serializable {
    public Object apply(Object column, Object query) { return unanswered(column); }
    public boolean equals(Object other) { return other instanceof OfQuery; }
    public int hashCode() { return 18; }
  }

  /** A call that says which column of which relation it is about. */
  public static class Bound extends scala.runtime.AbstractFunction3 implements Unanswered, java.io.Serializable {
    public Object apply(Object column, Object query, Object first) { return unanswered(column); }
    public boolean equals(Object other) { return other instanceof Bound; }
    public int hashCode() { return 19; }
  }

  public static class Builder extends scala.runtime.AbstractFunction1 {
    final String name;
    final DataType type;
    final int arguments;

    Builder(String name, DataType type, int arguments) {
      this.name = name;
      this.type = type;
      this.arguments = arguments;
    }

    public Object apply(Object call) {
      scala.collection.immutable.Seq operands = (scala.collection.immutable.Seq) call;
      if (operands.size() != arguments) {
        throw new IllegalArgumentException(name + " takes " + (arguments == 1 ? "a column" : "a column and its query") + ": "
          + name + "(message" + (arguments == 1 ? ")" : ", 'error AND timeout')"));
      }
      scala.collection.immutable.Seq none = CaseClasses.seq(new ArrayList());
      Object body = arguments == 1 ? (Object) new OfColumn() : new OfQuery();
      return new ScalaUDF(body, type, operands, none, scala.Option.empty(), scala.Option.apply(name), true, true);
    }
  }
}
