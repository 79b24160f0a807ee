package io.indextables;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * `search` and `isearch`, as Databricks has them, made of Spark's own expressions.
 *
 * A text is compared by `contains`, which Spark and our file index understand; the fields of a struct by OR, arrays and the
 * values of maps by `exists`: their rules for NULL are those of `search`. Words and variants need code of ours. Python says
 * what is wrong with a call, and which words a pattern has, for SQL with and without Spark alike.
 */
final class SearchFunction {
  /** The mode first, then what a call of `search` has: for DataFrames, and where the session has a `search` of its own. */
  static final String OWN = "indextables_";

  private final String name;
  private final List words = new ArrayList();
  private final boolean wholeWords;
  private final UTF8String pattern;

  private SearchFunction(String name, List targets, Object pattern, boolean isConstant, String mode) {
    this.name = name;
    ArrayList shown = new ArrayList();
    ArrayList types = new ArrayList();
    ArrayList collated = new ArrayList();
    for (int i = 0; i < targets.size(); i++) {
      Expression target = (Expression) targets.get(i);
      shown.add(target.sql());
      types.add(target.dataType().json());
      collated.add(Boolean.valueOf(target.dataType() instanceof StringType && !target.dataType().sql().replace(" COLLATE UTF8_BINARY", "").equals("STRING")));
    }
    Object compared = pattern;
    if (pattern != null && name.equals("isearch")) compared = new Lower(new Literal(pattern, DataTypes.StringType)).eval(null);
    Map answer = Bridge.call("search_function", Bridge.map(new Object[] {
      "name", name, "targets", shown, "types", types, "collated", collated, "constant", Boolean.valueOf(isConstant),
      "pattern", compared == null ? null : compared.toString(), "mode", mode}));
    this.pattern = (UTF8String) compared;
    wholeWords = answer.get("words") != null;
    if (wholeWords) words.addAll((List) answer.get("words"));
    if (wholeWords) WordSearch.know((String) answer.get("classes"));
  }

  private Expression any(List targets) {
    if (pattern == null) return nothing();
    Expression all = null;
    for (int i = 0; i < targets.size(); i++) all = or(all, in((Expression) targets.get(i)));
    return all;
  }

  private static Expression or(Expression one, Expression other) { return one == null ? other : new Or(one, other); }

  private static Expression nothing() { return new Literal(null, DataTypes.BooleanType); }

  /** Whether a value, or one inside it, matches; null for values that hold no text. */
  private Expression in(Expression value) {
    DataType type = value.dataType();
    if (type instanceof NullType) return nothing();
    if (type instanceof StringType) return inText(value);
    if (type instanceof VariantType) return udf(new VariantSearch(words, wholeWords, pattern.toString(), name.equals("isearch")), value); // since 4.0
    if (type instanceof MapType) return in(new MapValues(value));
    if (type instanceof ArrayType) {
      NamedLambdaVariable item = new NamedLambdaVariable("item", ((ArrayType) type).elementType(), ((ArrayType) type).containsNull(),
        NamedExpression.newExprId(), new AtomicReference());
      Expression test = in(item);
      return test == null ? null : new ArrayExists(value, new LambdaFunction(test, CaseClasses.seq(java.util.Collections.singletonList(item)), false), true);
    }
    if (!(type instanceof StructType)) return null;
    Expression all = null;
    StructField[] fields = ((StructType) type).fields();
    for (int i = 0; i < fields.length; i++) {
      Expression field = in(new GetStructField(value, i, scala.Option.apply(fields[i].name())));
      if (field != null) all = or(all, field);
    }
    return all;
  }

  private Expression inText(Expression value) {
    Expression text = name.equals("isearch") ? new Lower(value) : value;
    if (!wholeWords) return new Contains(text, new Literal(pattern, DataTypes.StringType));
    Expression all = udf(new WordSearch(words), text);
    for (int i = words.size() - 1; i >= 0; i--) all = new And(new Contains(text, new Literal(UTF8String.fromString((String) words.get(i)), DataTypes.StringType)), all);
    return all;
  }

  private Expression udf(Object body, Expression value) {
    scala.collection.immutable.Seq none = CaseClasses.seq(new ArrayList());
    scala.collection.immutable.Seq children = CaseClasses.seq(java.util.Collections.singletonList(value));
    return new ScalaUDF(body, DataTypes.BooleanType, children, none, scala.Option.empty(), scala.Option.apply(name), true, true);
  }

  /** Makes an expression of a call. */
  public static class Builder extends scala.runtime.AbstractFunction1 {
    final String name;
    Builder(String name) { this.name = name; }

    public Object apply(Object call) {
      scala.collection.immutable.Seq operands = (scala.collection.immutable.Seq) call;
      boolean own = name.startsWith(OWN);
      if (!own) {
        SessionCatalog catalog = Sessions.catalog();
        // A function that somebody has created under this name is the one that is meant.
        // since 4.3
        scala.Option session = catalog.identifierFromSystemNameParts(CaseClasses.seq(java.util.Arrays.asList(new String[] {"system", "session", name})));
        scala.Option temporary = catalog.resolveScalarFunctionByIdentifier((FunctionIdentifier) session.get(), operands);
        if (temporary.isDefined()) return temporary.get();
        // end
        if (catalog.isPersistentFunction(new FunctionIdentifier(name))) {
          List parts = java.util.Arrays.asList(new String[] {"spark_catalog", catalog.getCurrentDatabase(), name});
          return CaseClasses.make(UnresolvedFunction.class, new Object[] {"nameParts", CaseClasses.seq(parts), "arguments", operands});
        }
      }
      ArrayList plain = new ArrayList();
      String mode = null;
      for (scala.collection.Iterator i = operands.iterator(); i.hasNext();) {
        Object operand = i.next();
        if (own && mode == null) {
          mode = constant((Expression) operand);
        } else if (operand instanceof NamedArgumentExpression) {
          NamedArgumentExpression named = (NamedArgumentExpression) operand;
          if (mode != null || !named.key().equalsIgnoreCase("mode")) throw new IllegalArgumentException(name + " has one named argument, mode => 'word'");
          mode = constant(named.value());
        } else {
          plain.add(operand);
        }
      }
      int last = plain.size() - 1;
      Expression pattern = last < 0 ? null : (Expression) plain.remove(last);
      boolean isConstant = pattern == null || (pattern.foldable() && (pattern.dataType() instanceof StringType || pattern.dataType() instanceof NullType));
      SearchFunction search = new SearchFunction(own ? name.substring(OWN.length()) : name, plain, isConstant && pattern != null ? pattern.eval(null) : null, isConstant, mode);
      return search.any(plain);
    }

    private static String constant(Expression e) {
      Object value = e.foldable() ? e.eval(null) : null;
      return value == null ? e.sql() : value.toString();
    }
  }
}
