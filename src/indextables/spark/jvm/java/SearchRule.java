package io.indextables;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataTypes;

/**
 * An optimizer rule that puts the answers of searches into a plan, after Spark has moved filters down to the tables.
 *
 * What is demand of a table is carried down to it as a list of searches. A search that a filter directly over the table asks
 * for leaves only matching rows; any other becomes a hidden column, which the plans between pass up to where it stands. Where
 * they cannot, and on streams, rows are compared with the query one batch after the other.
 */
public class SearchRule extends Rule {
  private static final TreeNodeTag SHOWN = new TreeNodeTag("indextables.search");

  public TreeNode apply(TreeNode plan) {
    LogicalPlan whole = (LogicalPlan) plan;
    if (!whole.containsPattern(TreePattern.SCALA_UDF())) return whole;
    ArrayList explained = new ArrayList();
    LogicalPlan answered = node(whole, new Demand(explained)).plan;
    // On the whole plan: Spark keeps the tag of a plan that it replaces, and folds the small ones inside.
    show(answered, explained);
    return answered;
  }

  /** Notes what EXPLAIN is to tell of a plan, behind what is noted already. */
  static void show(LogicalPlan plan, List lines) {
    if (lines.isEmpty()) return;
    ArrayList all = new ArrayList();
    scala.Option noted = plan.getTagValue(SHOWN);
    if (noted.isDefined()) all.addAll((List) noted.get());
    all.addAll(lines);
    plan.setTagValue(SHOWN, all);
  }

  /** What EXPLAIN tells of the searches in an optimized plan. */
  public static List shown(LogicalPlan plan) {
    LinkedHashSet lines = new LinkedHashSet();
    scala.Option tag = plan.getTagValue(SHOWN);
    if (tag.isDefined()) lines.addAll((List) tag.get());
    for (scala.collection.Iterator i = plan.innerChildren().iterator(); i.hasNext();) lines.addAll(shown((LogicalPlan) i.next()));
    for (scala.collection.Iterator i = plan.subqueries().iterator(); i.hasNext();) lines.addAll(shown((LogicalPlan) i.next()));
    for (scala.collection.Iterator i = plan.children().iterator(); i.hasNext();) lines.addAll(shown((LogicalPlan) i.next()));
    return new ArrayList(lines);
  }

  /** Notes it on every plan made for one search: a tag is lost where Spark puts a plan with other tags in the place of its own. */
  private static void showInside(LogicalPlan plan, List lines) {
    show(plan, lines);
    for (scala.collection.Iterator i = plan.children().iterator(); i.hasNext();) showInside((LogicalPlan) i.next(), lines);
  }

  /** What the plans above want of one below them. */
  static final class Demand {
    /** Searches by their keys, in the columns of the plan they are demand of. */
    LinkedHashMap marks = new LinkedHashMap();
    /** The columns that are read; null for all. */
    AttributeSet columns = null;
    /** How many of the best rows are enough, and by which expression they are ordered. */
    int best = -1;
    Expression order = null;
    /** How many rows are enough, whatever their order. */
    int limit = -1;
    /** Where what EXPLAIN tells is put. */
    final List explained;

    Demand(List explained) { this.explained = explained; }
  }

  /** A plan with columns for the searches that were demand of it: expressions by the keys of the searches. */
  static final class Answered {
    LogicalPlan plan;
    final HashMap answers = new HashMap();

    Answered(LogicalPlan plan) { this.plan = plan; }
  }

  private Answered node(LogicalPlan plan, Demand demand) {
    if (plan.children().isEmpty()) return leaf(plan, demand, null);
    List own = SearchCall.in(plan.expressions());
    boolean below = false;
    for (scala.collection.Iterator i = plan.children().iterator(); i.hasNext();) if (((LogicalPlan) i.next()).containsPattern(TreePattern.SCALA_UDF())) below = true;
    if (own.isEmpty() && demand.marks.isEmpty() && !below) return new Answered(plan);
    if (plan instanceof org.apache.spark.sql.catalyst.plans.logical.Filter && ((LogicalPlan) plan.children().apply(0)).children().isEmpty()) {
      Answered answer = leaf((LogicalPlan) plan.children().apply(0), demand, ((org.apache.spark.sql.catalyst.plans.logical.Filter) plan).condition());
      if (answer != null) return answer;
    }
    HashMap answers = new HashMap();
    ArrayList children = new ArrayList();
    for (scala.collection.Iterator i = plan.children().iterator(); i.hasNext();) {
      LogicalPlan child = (LogicalPlan) i.next();
      Answered answer = node(child, of(plan, child, own, demand));
      children.add(answer.plan);
      answers.putAll(answer.answers);
    }
    LogicalPlan rebuilt = (LogicalPlan) plan.withNewChildren(CaseClasses.seq(children));
    for (int i = 0; i < own.size(); i++) if (!answers.containsKey(SearchCall.key((Expression) own.get(i)))) answers.put(SearchCall.key((Expression) own.get(i)), compared(plan, (Expression) own.get(i)));
    return passed(plan, answered(rebuilt, answers), answers, demand);
  }

  /** What a plan wants of a child: its own searches, and those from above that it can pass on. */
  private static Demand of(LogicalPlan plan, LogicalPlan child, List own, Demand demand) {
    Demand below = new Demand(demand.explained);
    for (int i = 0; i < own.size(); i++) want(below, child, (Expression) own.get(i), (Expression) own.get(i));
    boolean passes = Origin.passes(plan) || plan instanceof Project;
    for (java.util.Iterator i = demand.marks.values().iterator(); passes && i.hasNext();) {
      Expression mark = (Expression) i.next();
      want(below, child, mark, plan instanceof Project ? below((Project) plan, mark) : mark);
    }
    if (plan instanceof Project || plan instanceof Aggregate) below.columns = plan.references();
    else if (plan instanceof org.apache.spark.sql.catalyst.plans.logical.Filter && demand.columns != null) below.columns = demand.columns.$plus$plus(plan.references());
    if (plan instanceof LocalLimit && ((LocalLimit) plan).limitExpr() instanceof Literal) {
      below.limit = ((Number) ((Literal) ((LocalLimit) plan).limitExpr()).value()).intValue();
    } else if (plan instanceof Sort && demand.limit >= 0) {
      scala.collection.immutable.Seq order = ((Sort) plan).order();
      SortOrder first = (SortOrder) order.head();
      if (order.size() == 1 && ((Sort) plan).global() && first.direction().sql().equals("DESC")) {
        below.best = demand.limit;
        below.order = first.child();
      }
    } else if (plan instanceof Project) {
      below.limit = demand.limit;
      below.best = demand.best;
      below.order = demand.order;
      if (below.order instanceof Attribute) {
        for (scala.collection.Iterator i = ((Project) plan).projectList().iterator(); i.hasNext();) {
          NamedExpression item = (NamedExpression) i.next();
          if (item instanceof Alias && item.exprId().equals(((Attribute) demand.order).exprId())) below.order = ((Alias) item).child();
        }
      }
    }
    return below;
  }

  private static void want(Demand demand, LogicalPlan child, Expression mark, Expression markBelow) {
    if (markBelow == null) return;
    List columns = SearchCall.attributes(markBelow);
    for (int i = 0; i < columns.size(); i++) if (!child.outputSet().contains((Attribute) columns.get(i))) return;
    if (!columns.isEmpty()) demand.marks.put(SearchCall.key(mark), markBelow);
  }

  /** A search in the columns of a projection's child; null where one of them is computed. */
  private static Expression below(Project plan, Expression mark) {
    HashMap names = new HashMap();
    List columns = SearchCall.attributes(mark);
    for (int i = 0; i < columns.size(); i++) {
      Attribute column = Origin.below(plan, (Attribute) columns.get(i));
      if (column == null) return null;
      names.put(((Attribute) columns.get(i)).exprId(), column);
    }
    return SearchCall.with(mark, renamed(SearchCall.column(mark), names), null);
  }

  static Expression renamed(Expression e, Map names) {
    if (e instanceof Attribute) return names.containsKey(((Attribute) e).exprId()) ? (Expression) names.get(((Attribute) e).exprId()) : e;
    ArrayList children = new ArrayList();
    for (scala.collection.Iterator i = e.children().iterator(); i.hasNext();) children.add(renamed((Expression) i.next(), names));
    return children.isEmpty() ? e : (Expression) e.withNewChildren(CaseClasses.seq(children));
  }

  /** A plan whose children have hidden columns: those demand above stay, the others end here. */
  private static Answered passed(LogicalPlan before, LogicalPlan plan, Map answers, Demand demand) {
    ArrayList columns = new ArrayList();
    for (scala.collection.Iterator i = before.output().iterator(); i.hasNext();) columns.add(i.next());
    int shown = columns.size();
    HashMap passedOn = new HashMap();
    for (java.util.Iterator i = demand.marks.keySet().iterator(); i.hasNext();) {
      Object key = i.next();
      Object answer = answers.get(key);
      if (answer instanceof Attribute && !columns.contains(answer)) columns.add(answer);
      if (answer != null) passedOn.put(key, answer);
    }
    LogicalPlan shownPlan = plan;
    if (plan instanceof Project && columns.size() > shown) {
      ArrayList list = new ArrayList();
      for (scala.collection.Iterator i = ((Project) plan).projectList().iterator(); i.hasNext();) list.add(i.next());
      list.addAll(columns.subList(shown, columns.size()));
      shownPlan = new Project(CaseClasses.seq(list), (LogicalPlan) plan.children().apply(0));
    } else if (plan.output().size() != columns.size() && Origin.passes(plan)) {
      shownPlan = new Project(CaseClasses.seq(columns), plan);
    }
    Answered result = new Answered(shownPlan);
    result.answers.putAll(passedOn);
    return result;
  }

  /** A plan with its own searches answered. */
  static LogicalPlan answered(LogicalPlan plan, Map answers) {
    return answers.isEmpty() ? plan : (LogicalPlan) plan.mapExpressions(new Answering(answers));
  }

  public static class Answering extends scala.runtime.AbstractFunction1 {
    final Map answers;
    Answering(Map answers) { this.answers = answers; }
    public Object apply(Object e) { return SearchCall.answered((Expression) e, answers); }
  }

  // ---- tables ----

  /** A leaf, with the filter directly over it if there is one; null where it is none of ours and has such a filter. */
  private Answered leaf(LogicalPlan plan, Demand demand, Expression condition) {
    ArrayList conjuncts = new ArrayList();
    if (condition != null) PlanningRule.split(condition, conjuncts);
    LinkedHashMap marks = new LinkedHashMap(demand.marks);
    List own = SearchCall.in(CaseClasses.seq(conjuncts));
    for (int i = 0; i < own.size(); i++) if (!SearchCall.attributes((Expression) own.get(i)).isEmpty()) marks.put(SearchCall.key((Expression) own.get(i)), own.get(i));
    if (plan instanceof InMemoryRelation && !marks.isEmpty()) {
      LogicalPlan inside = cached((InMemoryRelation) plan);
      LogicalPlan all = condition == null ? inside : new org.apache.spark.sql.catalyst.plans.logical.Filter(condition, inside);
      return node(all, demand);
    }
    LogFileIndex index = Origin.index(plan);
    if (index == null || plan.isStreaming() || marks.isEmpty()) return condition == null ? new Answered(plan) : null;
    return new Table(plan, index, marks, conjuncts, demand).answered();
  }

  /** What was cached, under the names it is cached by: an index knows rows of splits, not those of a cache. */
  private static LogicalPlan cached(InMemoryRelation plan) {
    LogicalPlan inside = (LogicalPlan) Sessions.active().sessionState().optimizer().execute(Caches.plan(plan));
    ArrayList columns = new ArrayList();
    for (int i = 0; i < plan.output().size(); i++) columns.add(as((Attribute) inside.output().apply(i), (Attribute) plan.output().apply(i)));
    return new Project(CaseClasses.seq(columns), inside);
  }

  /** A column under the name and the number of another. */
  static NamedExpression as(Attribute column, Attribute target) {
    if (column.exprId().equals(target.exprId())) return column;
    return new Alias(column, target.name(), target.exprId(), target.qualifier(), scala.Option.apply(target.metadata()), CaseClasses.seq(new ArrayList()));
  }

  /** One table, with all that is demand of it. */
  private static final class Table {
    LogicalPlan plan;
    LogFileIndex index;
    final LinkedHashMap marks;
    final List conjuncts;
    final Demand demand;
    final HashMap answers = new HashMap();
    final ArrayList rest = new ArrayList();
    final ArrayList required = new ArrayList();

    Table(LogicalPlan plan, LogFileIndex index, LinkedHashMap marks, List conjuncts, Demand demand) {
      this.plan = plan;
      this.index = index;
      this.marks = marks;
      this.conjuncts = conjuncts;
      this.demand = demand;
    }

    Answered answered() {
      ArrayList hidden = new ArrayList();
      ArrayList searches = new ArrayList();
      boolean scored = false;
      for (int i = 0; i < conjuncts.size(); i++) if (SearchCall.is(conjuncts.get(i)) && isSearch((Expression) conjuncts.get(i)) && isOwn((Expression) conjuncts.get(i))) required.add(SearchCall.key((Expression) conjuncts.get(i)));
      for (java.util.Iterator i = marks.keySet().iterator(); i.hasNext();) {
        String key = (String) i.next();
        Expression mark = (Expression) marks.get(key);
        if (!isOwn(mark)) {
          // Inferred from an equality, so that it is true wherever the search it was copied from is.
          answers.put(key, Literal.TrueLiteral());
          continue;
        }
        boolean ofRows = SearchCall.kind(mark).equals(SearchCall.SCORE);
        if (!isSearch(mark) && !ofRows) continue;
        scored = scored || ofRows;
        boolean dropped = required.contains(key) && !demand.marks.containsKey(key) && !inside(key);
        Attribute column = dropped ? null : hidden(ofRows ? "_score" : "__indextables_hit_" + hidden.size(), ofRows);
        if (!dropped) hidden.add(column);
        answers.put(key, dropped ? Literal.TrueLiteral() : column);
        searches.add(Bridge.map(new Object[] {"kind", SearchCall.kind(mark), "column", SearchCall.kind(mark).equals(SearchCall.ALL) ? null : Origin.names(plan, SearchCall.about(mark)).get(0),
          "query", SearchCall.query(mark), "hidden", dropped ? null : column.name(), "required", Boolean.valueOf(required.contains(key))}));
      }
      for (int i = 0; i < conjuncts.size(); i++) {
        Expression part = (Expression) conjuncts.get(i);
        if (SearchCall.is(part) && (required.contains(SearchCall.key(part)) || !isOwn(part))) continue;
        rest.add(part);
      }
      LogicalPlan rows = searches.isEmpty() ? plan : rowsOf(searches, hidden, scored);
      for (java.util.Iterator i = marks.keySet().iterator(); i.hasNext();) {
        Object key = i.next();
        if (!answers.containsKey(key)) answers.put(key, inRows(plan, (Expression) marks.get(key), SearchCall.about((Expression) marks.get(key))));
      }
      if (!rest.isEmpty()) {
        Expression all = SearchCall.answered((Expression) rest.get(0), answers);
        for (int i = 1; i < rest.size(); i++) all = new And(all, SearchCall.answered((Expression) rest.get(i), answers));
        rows = new org.apache.spark.sql.catalyst.plans.logical.Filter(all, rows);
      }
      return shown(rows, hidden);
    }

    /** Without the hidden columns that only the filter here has used. */
    private Answered shown(LogicalPlan filtered, List hidden) {
      ArrayList columns = new ArrayList();
      for (scala.collection.Iterator i = filtered.output().iterator(); i.hasNext();) {
        Object column = i.next();
        boolean used = !hidden.contains(column);
        for (java.util.Iterator j = demand.marks.keySet().iterator(); j.hasNext();) if (column.equals(answers.get(j.next()))) used = true;
        if (used) columns.add(column);
      }
      Answered result = new Answered(columns.size() == filtered.output().size() ? filtered : new Project(CaseClasses.seq(columns), filtered));
      for (java.util.Iterator j = demand.marks.keySet().iterator(); j.hasNext();) {
        Object key = j.next();
        if (answers.containsKey(key)) result.answers.put(key, answers.get(key));
      }
      return result;
    }

    /** Whether a search that is required also stands inside another condition. */
    private boolean inside(String key) {
      for (int i = 0; i < conjuncts.size(); i++) {
        if (SearchCall.is(conjuncts.get(i))) continue;
        List marks = SearchCall.in(((Expression) conjuncts.get(i)).children());
        for (int j = 0; j < marks.size(); j++) if (SearchCall.key((Expression) marks.get(j)).equals(key)) return true;
      }
      return false;
    }

    private boolean isSearch(Expression mark) { return SearchCall.kind(mark).equals(SearchCall.SEARCH) || SearchCall.kind(mark).equals(SearchCall.ALL); }

    private boolean isOwn(Expression mark) {
      return SearchCall.first(mark).length() == 0 || SearchCall.first(mark).equals(SearchCall.about(mark));
    }

    private static Attribute hidden(String name, boolean score) {
      return new AttributeReference(name, score ? DataTypes.FloatType : DataTypes.BooleanType, true,
        org.apache.spark.sql.types.Metadata.empty(), NamedExpression.newExprId(), CaseClasses.seq(new ArrayList()));
    }

    /** The rows as Python finds them; where it cannot, searches are left to be compared. */
    private LogicalPlan rowsOf(List searches, List hidden, boolean scored) {
      if (index.identity().indexOf("@newest ") >= 0) pin();
      ArrayList trees = new ArrayList();
      ArrayList plain = new ArrayList();
      for (int i = 0; i < rest.size(); i++) {
        Expression part = (Expression) rest.get(i);
        ArrayList one = new ArrayList();
        one.add(part);
        if (!part.deterministic() || SubqueryExpression.hasSubquery(part) || !SearchCall.in(CaseClasses.seq(one)).isEmpty()) continue;
        trees.add(LogFileIndex.tree(part));
        plain.add(part);
      }
      ArrayList names = new ArrayList();
      AttributeSet read = demand.columns;
      for (int i = 0; read != null && i < rest.size(); i++) read = read.$plus$plus(((Expression) rest.get(i)).references());
      boolean whole = false;
      for (scala.collection.Iterator i = plan.output().iterator(); i.hasNext();) {
        Attribute column = (Attribute) i.next();
        boolean ofFile = FileSourceMetadataAttribute.unapply((AttributeReference) column).isDefined();
        if (read != null && !read.contains(column)) continue;
        whole = whole || ofFile;
        names.add(column.name());
      }
      HashMap objects = new HashMap();
      LogicalPlan numbered = numbered(plain);
      objects.put("rows", numbered);
      int best = rest.isEmpty() && required.size() == 1 && demand.order != null && SearchCall.is(demand.order) && SearchCall.kind(demand.order).equals(SearchCall.SCORE) ? demand.best : -1;
      Map answer = Bridge.call("search", Bridge.map(new Object[] {
        "identity", index.identity(), "searches", searches, "conditions", trees, "columns", names, "whole", Boolean.valueOf(whole),
        "file", ((Attribute) numbered.output().last()).name(), "scored", Boolean.valueOf(scored), "best", Integer.valueOf(best)}), objects);
      LogicalPlan answerPlan = (LogicalPlan) objects.get("plan");
      if (answerPlan == null) return compared();
      ArrayList lines = new ArrayList();
      lines.add(answer.get("shown"));
      demand.explained.addAll(lines);
      showInside(answerPlan, lines);
      return named(answerPlan, hidden);
    }

    /** The relation with its files named, for the numbers of rows in them. */
    private LogicalPlan numbered(List plain) {
      ArrayList columns = new ArrayList();
      Attribute file = null;
      for (scala.collection.Iterator i = plan.output().iterator(); i.hasNext();) {
        Attribute column = (Attribute) i.next();
        if (FileSourceMetadataAttribute.unapply((AttributeReference) column).isDefined()) file = column;
        else columns.add(column);
      }
      columns.add(file == null ? ((LogicalRelation) plan).metadataOutput().head() : file);
      LogicalPlan numbered = (LogicalPlan) CaseClasses.copy(plan, new Object[] {"output", CaseClasses.seq(columns)});
      for (int i = 0; i < plain.size(); i++) numbered = new org.apache.spark.sql.catalyst.plans.logical.Filter((Expression) plain.get(i), numbered);
      return numbered;
    }

    /** What Python made, under the columns that the plan above knows. */
    private LogicalPlan named(LogicalPlan answer, List hidden) {
      HashMap byName = new HashMap();
      for (scala.collection.Iterator i = plan.output().iterator(); i.hasNext();) {
        Attribute column = (Attribute) i.next();
        byName.put(column.name(), column);
      }
      for (int i = 0; i < hidden.size(); i++) byName.put(((Attribute) hidden.get(i)).name(), hidden.get(i));
      ArrayList columns = new ArrayList();
      for (scala.collection.Iterator i = answer.output().iterator(); i.hasNext();) {
        Attribute column = (Attribute) i.next();
        if (byName.containsKey(column.name())) columns.add(as(column, (Attribute) byName.get(column.name())));
      }
      return new Project(CaseClasses.seq(columns), answer);
    }

    /** Without rows that can be numbered: every search is compared with the rows. */
    private LogicalPlan compared() {
      for (java.util.Iterator i = marks.keySet().iterator(); i.hasNext();) {
        Object key = i.next();
        Expression mark = (Expression) marks.get(key);
        if (isOwn(mark) && isSearch(mark)) answers.put(key, inRows(plan, mark, SearchCall.about(mark)));
      }
      rest.clear();
      for (int i = 0; i < conjuncts.size(); i++) rest.add(conjuncts.get(i));
      return plan;
    }

    /** One version for the rows and the index, where the relation reads whichever is newest. */
    private void pin() {
      HashMap objects = new HashMap();
      Bridge.call("pin", Bridge.map(new Object[] {"identity", index.identity()}), objects);
      plan = (LogicalPlan) CaseClasses.copy(plan, new Object[] {"relation", objects.get("relation")});
      index = Origin.index(plan);
    }
  }

  // ---- rows without an index ----

  /** A search that no table could answer: compared with the rows where the column is a table's, else refused. */
  private static Expression compared(LogicalPlan plan, Expression mark) {
    if (hasOuter(SearchCall.column(mark))) return mark;
    Object[] origin = Origin.of(plan.children(), mark);
    boolean copied = origin != null && SearchCall.first(mark).length() > 0 && !SearchCall.first(mark).equals(origin[1]);
    if (copied) return Literal.TrueLiteral();
    while (origin != null && origin[0] instanceof InMemoryRelation) {
      LogicalPlan leaf = (LogicalPlan) origin[0];
      origin = Origin.of(CaseClasses.seq(java.util.Collections.singletonList(cached((InMemoryRelation) leaf))), below(leaf, mark, (String) origin[1]));
    }
    LogicalPlan leaf = origin == null ? null : (LogicalPlan) origin[0];
    if (leaf == null || Origin.index(leaf) == null) refuse(mark);
    return inRows(leaf, mark, (String) origin[1]);
  }

  /** A search in the columns of a leaf, which it was found to be about. */
  private static Expression below(LogicalPlan leaf, Expression mark, String about) {
    HashMap names = new HashMap();
    List columns = SearchCall.attributes(mark);
    List leafColumns = Origin.columns(leaf, about);
    for (int i = 0; i < columns.size(); i++) names.put(((Attribute) columns.get(i)).exprId(), leafColumns.get(i));
    return SearchCall.with(mark, renamed(SearchCall.column(mark), names), null);
  }

  private static boolean hasOuter(Expression e) {
    if (e instanceof OuterReference) return true;
    for (scala.collection.Iterator i = e.children().iterator(); i.hasNext();) if (hasOuter((Expression) i.next())) return true;
    return false;
  }

  private static void refuse(Expression mark) {
    Bridge.call("refuse", Bridge.map(new Object[] {"kind", SearchCall.kind(mark), "column", SearchCall.column(mark).sql(), "query", SearchCall.query(mark)}));
    throw new IllegalStateException("indexquery cannot search " + SearchCall.column(mark).sql());
  }

  /** A search, or a highlight, as a function of the row's own text: Python makes it for columns that stand in for these. */
  private static Expression inRows(LogicalPlan leaf, Expression mark, String about) {
    List columns = SearchCall.attributes(mark);
    if (SearchCall.kind(mark).equals(SearchCall.SCORE) || columns.isEmpty()) refuse(mark);
    List names = Origin.names(leaf, about);
    ArrayList parts = new ArrayList();
    for (int i = 0; i < columns.size(); i++) {
      Attribute column = (Attribute) columns.get(i);
      parts.add(new Alias(column, "c" + i, NamedExpression.newExprId(), CaseClasses.seq(new ArrayList()), scala.Option.empty(), CaseClasses.seq(new ArrayList())));
    }
    HashMap objects = new HashMap();
    ArrayList plain = new ArrayList(columns);
    objects.put("rows", new Project(CaseClasses.seq(parts), LocalRelation$.MODULE$.apply(CaseClasses.seq(plain))));
    Bridge.call("compare", Bridge.map(new Object[] {
      "identity", Origin.index(leaf).identity(), "kind", SearchCall.kind(mark), "columns", names, "query", SearchCall.query(mark)}), objects);
    Project projection = (Project) objects.get("plan");
    HashMap back = new HashMap();
    for (int i = 0; i < parts.size(); i++) back.put(((Alias) parts.get(i)).exprId(), columns.get(i));
    return renamed(((Alias) projection.projectList().head()).child(), back);
  }
}
