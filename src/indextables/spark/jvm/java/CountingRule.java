package io.indextables;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.aggregate.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.types.*;

/**
 * An optimizer rule that puts answers of the log into a plan, so that no file is opened for them.
 *
 * Aggregates by count, min and max become a local relation if the log knows them of every row: of the whole table, by
 * partition, and under filters that all rows of the files left fulfil. A LIMIT reads as many files as have enough rows.
 * Python decides whether the log knows; what is asked here has one meaning in both. Everything else stays as it is.
 */
public class CountingRule extends Rule {
  private static final String ENABLED = "spark.indextables.aggregatePushdown.enabled";

  public TreeNode apply(TreeNode plan) {
    LogicalPlan whole = (LogicalPlan) plan;
    if (!Boolean.parseBoolean(whole.conf().getConfString(ENABLED, "false"))) return whole;
    ArrayList explained = new ArrayList();
    // A search is asked for of the whole version, whatever a limit leaves of it.
    LogicalPlan answered = answered(whole, explained, !whole.containsPattern(TreePattern.SCALA_UDF()));
    SearchRule.show(answered, explained);
    return answered;
  }

  private static LogicalPlan answered(LogicalPlan plan, List explained, boolean limits) {
    LogicalPlan answer = null;
    if (plan instanceof Aggregate) answer = aggregated((Aggregate) plan, explained);
    else if (plan instanceof LocalLimit && limits) answer = limited((LocalLimit) plan);
    if (answer != null) return answer;
    ArrayList children = new ArrayList();
    boolean changed = false;
    for (scala.collection.Iterator i = plan.children().iterator(); i.hasNext();) {
      LogicalPlan child = (LogicalPlan) i.next();
      LogicalPlan now = answered(child, explained, limits);
      changed = changed || now != child;
      children.add(now);
    }
    return changed ? (LogicalPlan) plan.withNewChildren(CaseClasses.seq(children)) : plan;
  }

  // ---- aggregates ----

  private static LogicalPlan aggregated(Aggregate plan, List explained) {
    Source source = Source.of((LogicalPlan) plan.children().head());
    if (source == null) return null;
    Question question = new Question(source);
    for (scala.collection.Iterator i = plan.groupingExpressions().iterator(); i.hasNext();) if (!question.groupBy((Expression) i.next())) return null;
    for (scala.collection.Iterator i = plan.aggregateExpressions().iterator(); i.hasNext();) if (!question.collect((Expression) i.next())) return null;
    List rows = source.index.counted(question.keyNames, question.aggregates, source.trees(), question.types());
    if (rows == null) return null;
    explained.add(source.index + ": aggregates answered by the log");
    LogicalPlan answer = (LogicalPlan) CaseClasses.make(LocalRelation.class, new Object[] {"output", CaseClasses.seq(question.output()), "data", CaseClasses.seq(rows)});
    ArrayList columns = new ArrayList();
    for (scala.collection.Iterator i = plan.aggregateExpressions().iterator(); i.hasNext();) columns.add(question.answered((Expression) i.next()));
    return new Project(CaseClasses.seq(columns), answer);
  }

  /** The keys and aggregates that one plan asks for; each is asked for once. */
  private static final class Question {
    final Source source;
    final ArrayList keys = new ArrayList();
    final ArrayList keyNames = new ArrayList();
    final ArrayList aggregates = new ArrayList();
    /** The columns of the answer, by what is asked for. */
    final LinkedHashMap answers = new LinkedHashMap();

    Question(Source source) { this.source = source; }

    boolean groupBy(Expression key) {
      Attribute column = source.column(key);
      // A zero or NaN as a key has one form in Spark's groups and may have another in the log.
      if (column == null || !isPlain(column) || column.dataType() instanceof FractionalType && !(column.dataType() instanceof DecimalType)) return false;
      keys.add(key);
      keyNames.add(column.name());
      return true;
    }

    /** Whether the log may know all that an expression is made of. */
    boolean collect(Expression e) {
      if (e instanceof AggregateExpression) return ask((AggregateExpression) e);
      if (e instanceof Attribute) return isKey((Attribute) e);
      if (!e.deterministic() || e instanceof PlanExpression) return false;
      for (scala.collection.Iterator i = e.children().iterator(); i.hasNext();) if (!collect((Expression) i.next())) return false;
      return true;
    }

    private boolean isKey(Attribute column) {
      for (int i = 0; i < keys.size(); i++) if (((Attribute) keys.get(i)).exprId().equals(column.exprId())) return true;
      return false;
    }

    private boolean ask(AggregateExpression e) {
      if (e.isDistinct() || e.filter().isDefined() || answers.containsKey(name(e))) return answers.containsKey(name(e));
      AggregateFunction function = e.aggregateFunction();
      Expression of = function.children().size() == 1 ? (Expression) function.children().head() : null;
      boolean isCount = function instanceof Count;
      if (of == null || !(isCount || function instanceof Min || function instanceof Max)) return false;
      boolean ofRows = isCount && of instanceof Literal && ((Literal) of).value() != null;
      Attribute column = ofRows ? null : source.column(of);
      if (!ofRows && (column == null || (!isCount && !isPlain(column)))) return false;
      String named = isCount ? "count" : function instanceof Min ? "min" : "max";
      aggregates.add(Bridge.map(new Object[] {"function", named, "column", ofRows ? null : column.name()}));
      answers.put(name(e), new AttributeReference(named, function.dataType(), function.nullable(),
        Metadata.empty(), NamedExpression.newExprId(), CaseClasses.seq(new ArrayList())));
      return true;
    }

    private static String name(AggregateExpression e) { return ((Expression) e.canonicalized()).toString() + (e.isDistinct() ? " distinct" : "") + e.filter(); }

    List output() {
      ArrayList output = new ArrayList(keys);
      output.addAll(answers.values());
      return output;
    }

    List types() {
      ArrayList types = new ArrayList();
      List output = output();
      for (int i = 0; i < output.size(); i++) types.add(((Attribute) output.get(i)).dataType());
      return types;
    }

    Expression answered(Expression e) {
      if (e instanceof AggregateExpression) return (Expression) answers.get(name((AggregateExpression) e));
      if (e instanceof Attribute || e.children().isEmpty()) return e;
      ArrayList children = new ArrayList();
      for (scala.collection.Iterator i = e.children().iterator(); i.hasNext();) children.add(answered((Expression) i.next()));
      return (Expression) e.withNewChildren(CaseClasses.seq(children));
    }
  }

  /** Whether the values of a column are ordered, and shown, as the log has them. */
  private static boolean isPlain(Attribute column) {
    DataType type = column.dataType();
    if (LogFileIndex.hasLength(column)) return false;
    return type.equals(DataTypes.StringType) || type instanceof NumericType || type instanceof DateType || type instanceof TimestampType
      || type instanceof TimestampNTZType || type instanceof BooleanType;
  }

  /** One of our relations, with the filters over it and the names that projections give its columns. */
  private static final class Source {
    final LogicalPlan relation;
    final LogFileIndex index;
    final ArrayList conjuncts = new ArrayList();
    /** Columns of the relation, by the numbers under which the plan above knows them; computed ones are missing. */
    HashMap columns = new HashMap();

    private Source(LogicalPlan relation, LogFileIndex index) {
      this.relation = relation;
      this.index = index;
      for (scala.collection.Iterator i = relation.output().iterator(); i.hasNext();) {
        Attribute column = (Attribute) i.next();
        if (!FileSourceMetadataAttribute.unapply((AttributeReference) column).isDefined()) columns.put(column.exprId(), column);
      }
    }

    /** What a plan reads, if it is only filters and projections over a relation of ours; else null. */
    static Source of(LogicalPlan plan) {
      LogFileIndex index = Origin.index(plan);
      if (index != null) return plan.isStreaming() ? null : new Source(plan, index);
      if (!(plan instanceof Project || plan instanceof org.apache.spark.sql.catalyst.plans.logical.Filter)) return null;
      Source below = of((LogicalPlan) plan.children().head());
      if (below == null) return null;
      if (plan instanceof Project) return below.projected((Project) plan);
      return below.filtered(((org.apache.spark.sql.catalyst.plans.logical.Filter) plan).condition());
    }

    private Source projected(Project plan) {
      HashMap shown = new HashMap();
      for (scala.collection.Iterator i = plan.projectList().iterator(); i.hasNext();) {
        NamedExpression item = (NamedExpression) i.next();
        if (!((Expression) item).deterministic()) return null;
        Attribute column = column(item instanceof Alias ? ((Alias) item).child() : (Expression) item);
        if (column != null) shown.put(item.exprId(), column);
      }
      columns = shown;
      return this;
    }

    private Source filtered(Expression condition) {
      ArrayList parts = new ArrayList();
      PlanningRule.split(condition, parts);
      for (int i = 0; i < parts.size(); i++) {
        Expression part = (Expression) parts.get(i);
        boolean isOwn = part.deterministic() && !SubqueryExpression.hasSubquery(part) && part.references().subsetOf(relation.outputSet());
        if (!isOwn || !SearchCall.in(CaseClasses.seq(java.util.Collections.singletonList(part))).isEmpty()) return null;
      }
      conjuncts.addAll(parts);
      return this;
    }

    Attribute column(Expression e) { return e instanceof Attribute ? (Attribute) columns.get(((Attribute) e).exprId()) : null; }

    List trees() {
      ArrayList trees = new ArrayList();
      for (int i = 0; i < conjuncts.size(); i++) trees.add(LogFileIndex.tree((Expression) conjuncts.get(i)));
      return trees;
    }
  }

  // ---- LIMIT ----

  /** A limit over a relation that lists no more files than have that many rows. */
  private static LogicalPlan limited(LocalLimit plan) {
    if (!(plan.limitExpr() instanceof Literal)) return null;
    LogicalPlan child = (LogicalPlan) plan.children().head();
    LogicalPlan relation = child;
    while (relation instanceof Project) relation = (LogicalPlan) relation.children().head();
    LogFileIndex index = Origin.index(relation);
    int rows = ((Number) ((Literal) plan.limitExpr()).value()).intValue();
    if (index == null || relation.isStreaming() || index.isLimited() || rows <= 0) return null;
    HadoopFsRelation files = (HadoopFsRelation) CaseClasses.field(relation, "relation");
    HadoopFsRelation few = new HadoopFsRelation(index.limited(rows), files.partitionSchema(), files.dataSchema(), files.bucketSpec(), files.fileFormat(), files.options(), files.sparkSession());
    LogicalPlan now = (LogicalPlan) CaseClasses.copy(relation, new Object[] {"relation", few});
    return (LogicalPlan) plan.withNewChildren(CaseClasses.seq(java.util.Collections.singletonList(over(child, now))));
  }

  private static LogicalPlan over(LogicalPlan plan, LogicalPlan relation) {
    if (!(plan instanceof Project)) return relation;
    return (LogicalPlan) plan.withNewChildren(CaseClasses.seq(java.util.Collections.singletonList(over((LogicalPlan) plan.children().head(), relation))));
  }

  /** For `injectPreCBORule`. */
  public static class Made extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new CountingRule(); }
  }
}
