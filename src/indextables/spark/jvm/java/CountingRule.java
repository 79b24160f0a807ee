package io.indextables;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.aggregate.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.types.*;

/**
 * An optimizer rule that puts answers of the log and of the index into a plan.
 *
 * Aggregates by count, min and max become a local relation if the log knows them of every row: of the whole table, by
 * partition, and under filters that all rows of the files left fulfil. Under a search they are computed where the splits are
 * opened, and Spark is given groups in place of rows. A LIMIT reads as many files as have enough rows.
 * Python decides what it can tell; what is asked here has one meaning in both. Everything else stays as it is.
 */
public class CountingRule extends Rule {
  /** Formats of `date_trunc` that make one time of all those in a minute. */
  private static final java.util.Set COARSE = new java.util.HashSet(java.util.Arrays.asList(
    new Object[] {"MINUTE", "HOUR", "DAY", "DD", "WEEK", "MON", "MONTH", "MM", "QUARTER", "YEAR", "YYYY", "YY"}));
  private static final String ENABLED = "spark.indextables.aggregatePushdown.enabled";

  public TreeNode apply(TreeNode plan) {
    LogicalPlan whole = (LogicalPlan) plan;
    if (!Boolean.parseBoolean(whole.conf().getConfString(ENABLED, "true"))) return whole;
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
    if (!source.searches.isEmpty()) return new Groups(source).of(plan, explained);
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
      if (answers.containsKey(name(e))) return true;
      Map asked = source.asked(e);
      if (asked == null) return false;
      AggregateFunction function = e.aggregateFunction();
      aggregates.add(asked);
      answers.put(name(e), new AttributeReference((String) asked.get("function"), function.dataType(), function.nullable(),
        Metadata.empty(), NamedExpression.newExprId(), CaseClasses.seq(new ArrayList())));
      return true;
    }

    static String name(AggregateExpression e) { return ((Expression) e.canonicalized()).toString() + (e.isDistinct() ? " distinct" : "") + e.filter(); }

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

  // ---- aggregates under a search ----

  /** The groups that the splits are asked for, and what Spark makes of them: keys may be computed there from those of the splits. */
  private static final class Groups {
    /** The grouping keys whose values, and the times whose minutes, are one and the same for every row of a group. */
    final LinkedHashMap keys = new LinkedHashMap();
    final ArrayList aggregates = new ArrayList();
    /** The indexes of aggregates, by what is asked for. */
    final LinkedHashMap indexes = new LinkedHashMap();
    final Source source;
    private boolean isPlain = true;

    Groups(Source source) { this.source = source; }

    LogicalPlan of(Aggregate plan, List explained) {
      for (scala.collection.Iterator i = plan.groupingExpressions().iterator(); i.hasNext();) if (!groupBy((Expression) i.next())) return null;
      for (scala.collection.Iterator i = plan.aggregateExpressions().iterator(); i.hasNext();) if (!collect((Expression) i.next(), plan)) return null;
      ArrayList names = new ArrayList();
      for (java.util.Iterator i = keys.values().iterator(); i.hasNext();) names.add(i.next());
      HashMap objects = new HashMap();
      Map answer = Bridge.call("search_groups", Bridge.map(new Object[] {"identity", source.index.identity(), "searches", source.searched(),
        "conditions", source.trees(), "keys", names, "aggregates", aggregates}), objects);
      LogicalPlan rows = (LogicalPlan) objects.get("plan");
      if (rows == null) return null;
      explained.add(answer.get("shown"));
      return grouped(plan, rows, Boolean.TRUE.equals(answer.get("merged")) && isPlain);
    }

    /** A key that is a column, or that has one value for all rows with the same values, or minutes, of columns. */
    private boolean groupBy(Expression key) {
      Expression computed = key instanceof Attribute ? source.expression((Attribute) key) : null;
      if (computed == null || !computed.deterministic()) return false;
      isPlain = isPlain && computed instanceof Attribute;
      return uses(computed, null);
    }

    private boolean uses(Expression e, Expression above) {
      if (e instanceof UserDefinedExpression || e instanceof PlanExpression) return false;
      if (e instanceof Attribute) {
        Attribute column = (Attribute) e;
        boolean isTime = column.dataType() instanceof TimestampType;
        if (!CountingRule.isPlain(column) || column.dataType() instanceof FractionalType && !(column.dataType() instanceof DecimalType)) return false;
        boolean byMinute = isTime && above != null;
        if (byMinute && !isCoarse(above)) return false;
        Map known = (Map) keys.get(column.exprId());
        if (known == null || !byMinute) keys.put(column.exprId(), Bridge.map(new Object[] {"column", column.name(), "step", byMinute ? "minute" : null}));
        return true;
      }
      for (scala.collection.Iterator i = e.children().iterator(); i.hasNext();) if (!uses((Expression) i.next(), e)) return false;
      return true;
    }

    /** Whether a function of a time has the same value for all times in a minute. */
    private static boolean isCoarse(Expression function) {
      if (!(function instanceof TimeZoneAwareExpression) || !isOfMinutes(((TimeZoneAwareExpression) function).zoneId())) return false;
      if (function instanceof Cast) return function.dataType() instanceof DateType;
      if (function instanceof Hour || function instanceof Minute) return true;
      Object format = function instanceof TruncTimestamp ? ((TruncTimestamp) function).format() : null;
      Object unit = format instanceof Literal ? ((Literal) format).value() : null;
      return unit != null && COARSE.contains(unit.toString().toUpperCase(java.util.Locale.ROOT));
    }

    /** Whether clocks differ from UTC by whole minutes, since 1973 at least; before that, Python asks for seconds. */
    private static boolean isOfMinutes(java.time.ZoneId zone) {
      return zone.getRules().getOffset(java.time.Instant.parse("1973-01-01T00:00:00Z")).getTotalSeconds() % 60 == 0;
    }

    private boolean collect(Expression e, Aggregate plan) {
      if (e instanceof AggregateExpression) return ask((AggregateExpression) e);
      if (e instanceof Attribute) {
        for (scala.collection.Iterator i = plan.groupingExpressions().iterator(); i.hasNext();) if (((Attribute) i.next()).exprId().equals(((Attribute) e).exprId())) return true;
        return false;
      }
      if (!e.deterministic() || e instanceof PlanExpression) return false;
      for (scala.collection.Iterator i = e.children().iterator(); i.hasNext();) if (!collect((Expression) i.next(), plan)) return false;
      return true;
    }

    private boolean ask(AggregateExpression e) {
      Map asked = source.asked(e);
      if (asked == null) return false;
      if (indexes.containsKey(Question.name(e))) return true;
      indexes.put(Question.name(e), Integer.valueOf(aggregates.size()));
      aggregates.add(asked);
      return true;
    }

    /** The plan over groups: those of splits are added up, unless there is one for every key already. */
    private LogicalPlan grouped(Aggregate plan, LogicalPlan rows, boolean isMerged) {
      HashMap byColumn = new HashMap();
      int at = 0;
      for (java.util.Iterator i = keys.keySet().iterator(); i.hasNext(); at++) byColumn.put(i.next(), rows.output().apply(at));
      ArrayList shown = new ArrayList();
      for (scala.collection.Iterator i = plan.groupingExpressions().iterator(); i.hasNext();) {
        Attribute key = (Attribute) i.next();
        shown.add(new Alias(SearchRule.renamed(source.expression(key), byColumn), key.name(), key.exprId(), key.qualifier(), scala.Option.apply(key.metadata()), CaseClasses.seq(new ArrayList())));
      }
      HashMap values = new HashMap();
      for (java.util.Iterator i = indexes.keySet().iterator(); i.hasNext();) {
        Object name = i.next();
        Attribute part = (Attribute) rows.output().apply(at + ((Number) indexes.get(name)).intValue());
        shown.add(part);
        values.put(name, part);
      }
      Project keyed = new Project(CaseClasses.seq(shown), rows);
      ArrayList columns = new ArrayList();
      for (scala.collection.Iterator i = plan.aggregateExpressions().iterator(); i.hasNext();) columns.add(merged((Expression) i.next(), values, isMerged));
      if (isMerged) return new Project(CaseClasses.seq(columns), keyed);
      return (LogicalPlan) CaseClasses.copy(plan, new Object[] {"aggregateExpressions", CaseClasses.seq(columns), "child", keyed});
    }

    private static Expression merged(Expression e, Map values, boolean isMerged) {
      if (e instanceof AggregateExpression) {
        AggregateFunction function = ((AggregateExpression) e).aggregateFunction();
        Expression part = (Expression) values.get(Question.name((AggregateExpression) e));
        if (!(function instanceof Count)) return isMerged ? part : ((AggregateFunction) function.withNewChildren(CaseClasses.seq(java.util.Collections.singletonList(part)))).toAggregateExpression();
        Expression total = isMerged ? part : (Expression) ((AggregateFunction) CaseClasses.make(Sum.class, new Object[] {"child", part})).toAggregateExpression();
        ArrayList counts = new ArrayList();
        counts.add(total);
        counts.add(new Literal(Long.valueOf(0L), DataTypes.LongType));
        return new Coalesce(CaseClasses.seq(counts));
      }
      if (e instanceof Attribute || e.children().isEmpty()) return e;
      ArrayList children = new ArrayList();
      for (scala.collection.Iterator i = e.children().iterator(); i.hasNext();) children.add(merged((Expression) i.next(), values, isMerged));
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
    /** The searches that every row has to match. */
    final ArrayList searches = new ArrayList();
    /** What the plan above knows by numbers, as expressions of the columns of the relation. */
    HashMap expressions = new HashMap();

    private Source(LogicalPlan relation, LogFileIndex index) {
      this.relation = relation;
      this.index = index;
      for (scala.collection.Iterator i = relation.output().iterator(); i.hasNext();) {
        Attribute column = (Attribute) i.next();
        if (!FileSourceMetadataAttribute.unapply((AttributeReference) column).isDefined()) expressions.put(column.exprId(), column);
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
        Expression computed = item instanceof Alias ? ((Alias) item).child() : (Expression) item;
        boolean isOwn = true;
        for (scala.collection.Iterator j = computed.references().iterator(); j.hasNext();) isOwn = isOwn && expressions.containsKey(((Attribute) j.next()).exprId());
        if (isOwn) shown.put(item.exprId(), SearchRule.renamed(computed, expressions));
      }
      expressions = shown;
      return this;
    }

    private Source filtered(Expression condition) {
      ArrayList parts = new ArrayList();
      PlanningRule.split(condition, parts);
      for (int i = 0; i < parts.size(); i++) {
        Expression part = (Expression) parts.get(i);
        boolean isOwn = part.deterministic() && !SubqueryExpression.hasSubquery(part) && part.references().subsetOf(relation.outputSet());
        if (!isOwn) return null;
        if (isSearch(part)) searches.add(part);
        else if (SearchCall.in(CaseClasses.seq(java.util.Collections.singletonList(part))).isEmpty()) conjuncts.add(part);
        else return null;
      }
      return this;
    }

    private static boolean isSearch(Expression part) {
      if (!SearchCall.is(part) || SearchCall.query(part) == null || SearchCall.attributes(part).isEmpty()) return false;
      boolean isOwn = SearchCall.first(part).length() == 0 || SearchCall.first(part).equals(SearchCall.about(part));
      return isOwn && (SearchCall.kind(part).equals(SearchCall.SEARCH) || SearchCall.kind(part).equals(SearchCall.ALL));
    }

    /** The searches as `bridge/searches.py` reads them. */
    List searched() {
      ArrayList searched = new ArrayList();
      for (int i = 0; i < searches.size(); i++) {
        Expression mark = (Expression) searches.get(i);
        Object column = SearchCall.kind(mark).equals(SearchCall.ALL) ? null : Origin.names(relation, SearchCall.about(mark)).get(0);
        searched.add(Bridge.map(new Object[] {"kind", SearchCall.kind(mark), "column", column, "query", SearchCall.query(mark), "required", Boolean.TRUE}));
      }
      return searched;
    }

    /** What the plan above knows as a column, in columns of the relation; null if it cannot be told. */
    Expression expression(Attribute e) { return (Expression) expressions.get(e.exprId()); }

    /** The column of the relation that an expression is; null for a computed one. */
    Attribute column(Expression e) {
      Expression computed = e instanceof Attribute ? expression((Attribute) e) : null;
      return computed instanceof Attribute ? (Attribute) computed : null;
    }

    /** An aggregate as Python has it; null if Python may compute it in another way. */
    Map asked(AggregateExpression e) {
      AggregateFunction function = e.aggregateFunction();
      Expression of = function.children().size() == 1 ? (Expression) function.children().head() : null;
      boolean isCount = function instanceof Count;
      if (e.isDistinct() || e.filter().isDefined() || of == null || !(isCount || function instanceof Min || function instanceof Max)) return null;
      boolean ofRows = isCount && of instanceof Literal && ((Literal) of).value() != null;
      Attribute column = ofRows ? null : column(of);
      if (!ofRows && (column == null || (!isCount && !isPlain(column)))) return null;
      String named = isCount ? "count" : function instanceof Min ? "min" : "max";
      return Bridge.map(new Object[] {"function", named, "column", ofRows ? null : column.name()});
    }

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
