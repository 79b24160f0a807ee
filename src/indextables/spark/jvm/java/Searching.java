package io.indextables;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
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
 * What is wanted of a table is carried down to it as a list of searches. A search that a filter directly over the table asks
 * for leaves only matching rows; any other becomes a hidden column, which the plans between pass up to where it stands. Where
 * they cannot, and on streams, rows are compared with the query one batch after the other.
 */
public class Searching extends Rule {
  private static final TreeNodeTag SHOWN = new TreeNodeTag("indextables.search");

  public TreeNode apply(TreeNode plan) {
    LogicalPlan whole = (LogicalPlan) plan;
    if (!whole.containsPattern(TreePattern.SCALA_UDF())) return whole;
    ArrayList said = new ArrayList();
    LogicalPlan made = node(whole, new Wanted(said)).plan;
    // On the whole plan: Spark keeps the tag of a plan that it replaces, and folds the small ones inside.
    if (!said.isEmpty()) made.setTagValue(SHOWN, said);
    return made;
  }

  /** What EXPLAIN tells of the searches in an optimized plan. */
  public static List shown(LogicalPlan plan) {
    ArrayList found = new ArrayList();
    scala.Option said = plan.getTagValue(SHOWN);
    if (said.isDefined()) found.addAll((List) said.get());
    for (scala.collection.Iterator i = plan.innerChildren().iterator(); i.hasNext();) found.addAll(shown((LogicalPlan) i.next()));
    for (scala.collection.Iterator i = plan.subqueries().iterator(); i.hasNext();) found.addAll(shown((LogicalPlan) i.next()));
    for (scala.collection.Iterator i = plan.children().iterator(); i.hasNext();) found.addAll(shown((LogicalPlan) i.next()));
    return found;
  }

  /** What the plans above want of one below them. */
  static final class Wanted {
    /** Searches by their keys, in the columns of the plan they are wanted of. */
    LinkedHashMap marks = new LinkedHashMap();
    /** The columns that are read; null for all. */
    AttributeSet columns = null;
    /** How many of the best rows are enough, and by which expression they are ordered. */
    int best = -1;
    Expression order = null;
    /** How many rows are enough, whatever their order. */
    int limit = -1;
    /** Where what EXPLAIN tells is put. */
    final List said;

    Wanted(List said) { this.said = said; }
  }

  /** A plan with columns for the searches that were wanted of it: expressions by the keys of the searches. */
  static final class Answered {
    LogicalPlan plan;
    final HashMap answers = new HashMap();

    Answered(LogicalPlan plan) { this.plan = plan; }
  }

  private Answered node(LogicalPlan plan, Wanted wanted) {
    if (plan.children().isEmpty()) return leaf(plan, wanted, null);
    List own = Mark.in(plan.expressions());
    boolean below = false;
    for (scala.collection.Iterator i = plan.children().iterator(); i.hasNext();) if (((LogicalPlan) i.next()).containsPattern(TreePattern.SCALA_UDF())) below = true;
    if (own.isEmpty() && wanted.marks.isEmpty() && !below) return new Answered(plan);
    if (plan instanceof org.apache.spark.sql.catalyst.plans.logical.Filter && ((LogicalPlan) plan.children().apply(0)).children().isEmpty()) {
      Answered found = leaf((LogicalPlan) plan.children().apply(0), wanted, ((org.apache.spark.sql.catalyst.plans.logical.Filter) plan).condition());
      if (found != null) return found;
    }
    HashMap answers = new HashMap();
    ArrayList children = new ArrayList();
    for (scala.collection.Iterator i = plan.children().iterator(); i.hasNext();) {
      LogicalPlan child = (LogicalPlan) i.next();
      Answered found = node(child, of(plan, child, own, wanted));
      children.add(found.plan);
      answers.putAll(found.answers);
    }
    LogicalPlan made = (LogicalPlan) plan.withNewChildren(Products.seq(children));
    for (int i = 0; i < own.size(); i++) if (!answers.containsKey(Mark.key((Expression) own.get(i)))) answers.put(Mark.key((Expression) own.get(i)), compared(plan, (Expression) own.get(i)));
    return passed(plan, answered(made, answers), answers, wanted);
  }

  /** What a plan wants of a child: its own searches, and those from above that it can pass on. */
  private static Wanted of(LogicalPlan plan, LogicalPlan child, List own, Wanted wanted) {
    Wanted found = new Wanted(wanted.said);
    for (int i = 0; i < own.size(); i++) want(found, child, (Expression) own.get(i), (Expression) own.get(i));
    boolean passes = Origin.passes(plan) || plan instanceof Project;
    for (java.util.Iterator i = wanted.marks.values().iterator(); passes && i.hasNext();) {
      Expression mark = (Expression) i.next();
      want(found, child, mark, plan instanceof Project ? below((Project) plan, mark) : mark);
    }
    if (plan instanceof Project || plan instanceof Aggregate) found.columns = plan.references();
    else if (plan instanceof org.apache.spark.sql.catalyst.plans.logical.Filter && wanted.columns != null) found.columns = wanted.columns.$plus$plus(plan.references());
    if (plan instanceof LocalLimit && ((LocalLimit) plan).limitExpr() instanceof Literal) {
      found.limit = ((Number) ((Literal) ((LocalLimit) plan).limitExpr()).value()).intValue();
    } else if (plan instanceof Sort && wanted.limit >= 0) {
      scala.collection.immutable.Seq order = ((Sort) plan).order();
      SortOrder first = (SortOrder) order.head();
      if (order.size() == 1 && ((Sort) plan).global() && first.direction().sql().equals("DESC")) {
        found.best = wanted.limit;
        found.order = first.child();
      }
    } else if (plan instanceof Project) {
      found.limit = wanted.limit;
      found.best = wanted.best;
      found.order = wanted.order;
      if (found.order instanceof Attribute) {
        for (scala.collection.Iterator i = ((Project) plan).projectList().iterator(); i.hasNext();) {
          NamedExpression item = (NamedExpression) i.next();
          if (item instanceof Alias && item.exprId().equals(((Attribute) wanted.order).exprId())) found.order = ((Alias) item).child();
        }
      }
    }
    return found;
  }

  private static void want(Wanted found, LogicalPlan child, Expression mark, Expression below) {
    if (below == null) return;
    List columns = Mark.attributes(below);
    for (int i = 0; i < columns.size(); i++) if (!child.outputSet().contains((Attribute) columns.get(i))) return;
    if (!columns.isEmpty()) found.marks.put(Mark.key(mark), below);
  }

  /** A search in the columns of a projection's child; null where one of them is computed. */
  private static Expression below(Project plan, Expression mark) {
    HashMap names = new HashMap();
    List columns = Mark.attributes(mark);
    for (int i = 0; i < columns.size(); i++) {
      Attribute found = Origin.below(plan, (Attribute) columns.get(i));
      if (found == null) return null;
      names.put(((Attribute) columns.get(i)).exprId(), found);
    }
    return Mark.with(mark, renamed(Mark.column(mark), names), null);
  }

  private static Expression renamed(Expression e, Map names) {
    if (e instanceof Attribute) return names.containsKey(((Attribute) e).exprId()) ? (Expression) names.get(((Attribute) e).exprId()) : e;
    ArrayList children = new ArrayList();
    for (scala.collection.Iterator i = e.children().iterator(); i.hasNext();) children.add(renamed((Expression) i.next(), names));
    return children.isEmpty() ? e : (Expression) e.withNewChildren(Products.seq(children));
  }

  /** A plan whose children have hidden columns: those wanted above stay, the others end here. */
  private static Answered passed(LogicalPlan before, LogicalPlan plan, Map answers, Wanted wanted) {
    ArrayList columns = new ArrayList();
    for (scala.collection.Iterator i = before.output().iterator(); i.hasNext();) columns.add(i.next());
    int shown = columns.size();
    HashMap kept = new HashMap();
    for (java.util.Iterator i = wanted.marks.keySet().iterator(); i.hasNext();) {
      Object key = i.next();
      Object answer = answers.get(key);
      if (answer instanceof Attribute && !columns.contains(answer)) columns.add(answer);
      if (answer != null) kept.put(key, answer);
    }
    LogicalPlan made = plan;
    if (plan instanceof Project && columns.size() > shown) {
      ArrayList list = new ArrayList();
      for (scala.collection.Iterator i = ((Project) plan).projectList().iterator(); i.hasNext();) list.add(i.next());
      list.addAll(columns.subList(shown, columns.size()));
      made = new Project(Products.seq(list), (LogicalPlan) plan.children().apply(0));
    } else if (plan.output().size() != columns.size() && Origin.passes(plan)) {
      made = new Project(Products.seq(columns), plan);
    }
    Answered found = new Answered(made);
    found.answers.putAll(kept);
    return found;
  }

  /** A plan with its own searches answered. */
  static LogicalPlan answered(LogicalPlan plan, Map answers) {
    return answers.isEmpty() ? plan : (LogicalPlan) plan.mapExpressions(new Answering(answers));
  }

  public static class Answering extends scala.runtime.AbstractFunction1 {
    final Map answers;
    Answering(Map answers) { this.answers = answers; }
    public Object apply(Object e) { return Mark.answered((Expression) e, answers); }
  }

  // ---- tables ----

  /** A leaf, with the filter directly over it if there is one; null where it is none of ours and has such a filter. */
  private Answered leaf(LogicalPlan plan, Wanted wanted, Expression condition) {
    ArrayList conjuncts = new ArrayList();
    if (condition != null) Planning.split(condition, conjuncts);
    LinkedHashMap marks = new LinkedHashMap(wanted.marks);
    List own = Mark.in(Products.seq(conjuncts));
    for (int i = 0; i < own.size(); i++) if (!Mark.attributes((Expression) own.get(i)).isEmpty()) marks.put(Mark.key((Expression) own.get(i)), own.get(i));
    if (plan instanceof InMemoryRelation && !marks.isEmpty()) {
      LogicalPlan inside = cached((InMemoryRelation) plan);
      LogicalPlan all = condition == null ? inside : new org.apache.spark.sql.catalyst.plans.logical.Filter(condition, inside);
      return node(all, wanted);
    }
    LogFileIndex index = Origin.index(plan);
    if (index == null || marks.isEmpty()) return condition == null ? new Answered(plan) : null;
    return new Table(plan, index, marks, conjuncts, wanted).answered();
  }

  /** What was cached, under the names it is cached by: an index knows rows of splits, not those of a cache. */
  private static LogicalPlan cached(InMemoryRelation plan) {
    LogicalPlan inside = (LogicalPlan) Sessions.active().sessionState().optimizer().execute(plan.cacheBuilder().logicalPlan());
    ArrayList columns = new ArrayList();
    for (int i = 0; i < plan.output().size(); i++) columns.add(as((Attribute) inside.output().apply(i), (Attribute) plan.output().apply(i)));
    return new Project(Products.seq(columns), inside);
  }

  /** A column under the name and the number of another. */
  static NamedExpression as(Attribute column, Attribute known) {
    if (column.exprId().equals(known.exprId())) return column;
    return new Alias(column, known.name(), known.exprId(), known.qualifier(), scala.Option.apply(known.metadata()), Products.seq(new ArrayList()));
  }

  /** One table, with all that is wanted of it. */
  private static final class Table {
    LogicalPlan plan;
    LogFileIndex index;
    final LinkedHashMap marks;
    final List conjuncts;
    final Wanted wanted;
    final HashMap answers = new HashMap();
    final ArrayList rest = new ArrayList();
    final ArrayList required = new ArrayList();

    Table(LogicalPlan plan, LogFileIndex index, LinkedHashMap marks, List conjuncts, Wanted wanted) {
      this.plan = plan;
      this.index = index;
      this.marks = marks;
      this.conjuncts = conjuncts;
      this.wanted = wanted;
    }

    Answered answered() {
      ArrayList hidden = new ArrayList();
      ArrayList searches = new ArrayList();
      boolean scored = false;
      for (int i = 0; i < conjuncts.size(); i++) if (Mark.is(conjuncts.get(i)) && isSearch((Expression) conjuncts.get(i)) && isOwn((Expression) conjuncts.get(i))) required.add(Mark.key((Expression) conjuncts.get(i)));
      for (java.util.Iterator i = marks.keySet().iterator(); i.hasNext();) {
        String key = (String) i.next();
        Expression mark = (Expression) marks.get(key);
        if (!isOwn(mark)) {
          // Inferred from an equality, so that it is true wherever the search it was copied from is.
          answers.put(key, Literal.TrueLiteral());
          continue;
        }
        boolean ofRows = Mark.kind(mark).equals(Mark.SCORE);
        if (!isSearch(mark) && !ofRows) continue;
        scored = scored || ofRows;
        boolean gone = required.contains(key) && !wanted.marks.containsKey(key) && !inside(key);
        Attribute made = gone ? null : hidden(ofRows ? "_score" : "__indextables_hit_" + hidden.size(), ofRows);
        if (!gone) hidden.add(made);
        answers.put(key, gone ? Literal.TrueLiteral() : made);
        searches.add(Bridge.map(new Object[] {"kind", Mark.kind(mark), "column", Mark.kind(mark).equals(Mark.ALL) ? null : Origin.names(plan, Mark.about(mark)).get(0),
          "query", Mark.query(mark), "hidden", gone ? null : made.name(), "required", Boolean.valueOf(required.contains(key))}));
      }
      for (int i = 0; i < conjuncts.size(); i++) {
        Expression part = (Expression) conjuncts.get(i);
        if (Mark.is(part) && (required.contains(Mark.key(part)) || !isOwn(part))) continue;
        rest.add(part);
      }
      LogicalPlan found = searches.isEmpty() ? plan : asked(searches, hidden, scored);
      for (java.util.Iterator i = marks.keySet().iterator(); i.hasNext();) {
        Object key = i.next();
        if (!answers.containsKey(key)) answers.put(key, inRows(plan, null, (Expression) marks.get(key), Mark.about((Expression) marks.get(key))));
      }
      if (!rest.isEmpty()) {
        Expression all = Mark.answered((Expression) rest.get(0), answers);
        for (int i = 1; i < rest.size(); i++) all = new And(all, Mark.answered((Expression) rest.get(i), answers));
        found = new org.apache.spark.sql.catalyst.plans.logical.Filter(all, found);
      }
      return shown(found, hidden);
    }

    /** Without the hidden columns that only the filter here has used. */
    private Answered shown(LogicalPlan found, List hidden) {
      ArrayList columns = new ArrayList();
      for (scala.collection.Iterator i = found.output().iterator(); i.hasNext();) {
        Object column = i.next();
        boolean used = !hidden.contains(column);
        for (java.util.Iterator j = wanted.marks.keySet().iterator(); j.hasNext();) if (column.equals(answers.get(j.next()))) used = true;
        if (used) columns.add(column);
      }
      Answered made = new Answered(columns.size() == found.output().size() ? found : new Project(Products.seq(columns), found));
      for (java.util.Iterator j = wanted.marks.keySet().iterator(); j.hasNext();) {
        Object key = j.next();
        if (answers.containsKey(key)) made.answers.put(key, answers.get(key));
      }
      return made;
    }

    /** Whether a search that is required also stands inside another condition. */
    private boolean inside(String key) {
      for (int i = 0; i < conjuncts.size(); i++) {
        if (Mark.is(conjuncts.get(i))) continue;
        List marks = Mark.in(((Expression) conjuncts.get(i)).children());
        for (int j = 0; j < marks.size(); j++) if (Mark.key((Expression) marks.get(j)).equals(key)) return true;
      }
      return false;
    }

    private boolean isSearch(Expression mark) { return Mark.kind(mark).equals(Mark.SEARCH) || Mark.kind(mark).equals(Mark.ALL); }

    private boolean isOwn(Expression mark) {
      return Mark.first(mark).length() == 0 || Mark.first(mark).equals(Mark.about(mark));
    }

    private static Attribute hidden(String name, boolean score) {
      return new AttributeReference(name, score ? DataTypes.FloatType : DataTypes.BooleanType, true,
        org.apache.spark.sql.types.Metadata.empty(), NamedExpression.newExprId(), Products.seq(new ArrayList()));
    }

    /** The rows as Python finds them; where it cannot, searches are left to be compared. */
    private LogicalPlan asked(List searches, List hidden, boolean scored) {
      if (index.identity().indexOf("@newest ") >= 0) pin();
      ArrayList trees = new ArrayList();
      ArrayList plain = new ArrayList();
      for (int i = 0; i < rest.size(); i++) {
        Expression part = (Expression) rest.get(i);
        ArrayList one = new ArrayList();
        one.add(part);
        if (!part.deterministic() || SubqueryExpression.hasSubquery(part) || !Mark.in(Products.seq(one)).isEmpty()) continue;
        trees.add(LogFileIndex.tree(part));
        plain.add(part);
      }
      ArrayList names = new ArrayList();
      AttributeSet read = wanted.columns;
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
      int best = rest.isEmpty() && required.size() == 1 && wanted.order != null && Mark.is(wanted.order) && Mark.kind(wanted.order).equals(Mark.SCORE) ? wanted.best : -1;
      Map answer = Bridge.call("search", Bridge.map(new Object[] {
        "identity", index.identity(), "searches", searches, "conditions", trees, "columns", names, "whole", Boolean.valueOf(whole),
        "file", ((Attribute) numbered.output().last()).name(), "scored", Boolean.valueOf(scored), "best", Integer.valueOf(best)}), objects);
      LogicalPlan made = (LogicalPlan) objects.get("plan");
      if (made == null) return compared();
      wanted.said.add(answer.get("shown"));
      return named(made, hidden);
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
      LogicalPlan made = (LogicalPlan) Products.copy(plan, new Object[] {"output", Products.seq(columns)});
      for (int i = 0; i < plain.size(); i++) made = new org.apache.spark.sql.catalyst.plans.logical.Filter((Expression) plain.get(i), made);
      return made;
    }

    /** What Python made, under the columns that the plan above knows. */
    private LogicalPlan named(LogicalPlan made, List hidden) {
      HashMap known = new HashMap();
      for (scala.collection.Iterator i = plan.output().iterator(); i.hasNext();) {
        Attribute column = (Attribute) i.next();
        known.put(column.name(), column);
      }
      for (int i = 0; i < hidden.size(); i++) known.put(((Attribute) hidden.get(i)).name(), hidden.get(i));
      ArrayList columns = new ArrayList();
      for (scala.collection.Iterator i = made.output().iterator(); i.hasNext();) {
        Attribute column = (Attribute) i.next();
        if (known.containsKey(column.name())) columns.add(as(column, (Attribute) known.get(column.name())));
      }
      return new Project(Products.seq(columns), made);
    }

    /** Without rows that can be numbered: every search is compared with the rows. */
    private LogicalPlan compared() {
      for (java.util.Iterator i = marks.keySet().iterator(); i.hasNext();) {
        Object key = i.next();
        Expression mark = (Expression) marks.get(key);
        if (isOwn(mark) && isSearch(mark)) answers.put(key, inRows(plan, null, mark, Mark.about(mark)));
      }
      rest.clear();
      for (int i = 0; i < conjuncts.size(); i++) rest.add(conjuncts.get(i));
      return plan;
    }

    /** One version for the rows and the index, where the relation reads whichever is newest. */
    private void pin() {
      HashMap objects = new HashMap();
      Bridge.call("pin", Bridge.map(new Object[] {"identity", index.identity()}), objects);
      plan = (LogicalPlan) Products.copy(plan, new Object[] {"relation", objects.get("relation")});
      index = Origin.index(plan);
    }
  }

  // ---- rows without an index ----

  /** A search that no table could answer: compared with the rows where the column is a table's, else refused. */
  private static Expression compared(LogicalPlan plan, Expression mark) {
    if (hasOuter(Mark.column(mark))) return mark;
    Object[] found = Origin.of(plan.children(), mark);
    boolean copied = found != null && Mark.first(mark).length() > 0 && !Mark.first(mark).equals(found[1]);
    if (copied) return Literal.TrueLiteral();
    while (found != null && found[0] instanceof InMemoryRelation) {
      LogicalPlan leaf = (LogicalPlan) found[0];
      found = Origin.of(Products.seq(java.util.Collections.singletonList(cached((InMemoryRelation) leaf))), below(leaf, mark, (String) found[1]));
    }
    LogicalPlan leaf = found == null ? null : (LogicalPlan) found[0];
    Map stream = leaf == null ? null : Origin.stream(leaf);
    if (leaf == null || (Origin.index(leaf) == null && stream == null)) refuse(mark);
    return inRows(leaf, stream, mark, (String) found[1]);
  }

  /** A search in the columns of a leaf, which it was found to be about. */
  private static Expression below(LogicalPlan leaf, Expression mark, String about) {
    HashMap names = new HashMap();
    List columns = Mark.attributes(mark);
    List there = Origin.columns(leaf, about);
    for (int i = 0; i < columns.size(); i++) names.put(((Attribute) columns.get(i)).exprId(), there.get(i));
    return Mark.with(mark, renamed(Mark.column(mark), names), null);
  }

  private static boolean hasOuter(Expression e) {
    if (e instanceof OuterReference) return true;
    for (scala.collection.Iterator i = e.children().iterator(); i.hasNext();) if (hasOuter((Expression) i.next())) return true;
    return false;
  }

  private static void refuse(Expression mark) {
    Bridge.call("refuse", Bridge.map(new Object[] {"kind", Mark.kind(mark), "column", Mark.column(mark).sql(), "query", Mark.query(mark)}));
    throw new IllegalStateException("indexquery cannot search " + Mark.column(mark).sql());
  }

  /** A search, or a highlight, as a function of the row's own text: Python makes it for columns that stand in for these. */
  private static Expression inRows(LogicalPlan leaf, Map stream, Expression mark, String about) {
    List columns = Mark.attributes(mark);
    if (Mark.kind(mark).equals(Mark.SCORE) || columns.isEmpty()) refuse(mark);
    List names = Origin.names(leaf, about);
    ArrayList parts = new ArrayList();
    for (int i = 0; i < columns.size(); i++) {
      Attribute column = (Attribute) columns.get(i);
      parts.add(new Alias(column, "c" + i, NamedExpression.newExprId(), Products.seq(new ArrayList()), scala.Option.empty(), Products.seq(new ArrayList())));
    }
    HashMap objects = new HashMap();
    ArrayList plain = new ArrayList(columns);
    objects.put("rows", new Project(Products.seq(parts), LocalRelation$.MODULE$.apply(Products.seq(plain))));
    LogFileIndex index = stream == null ? Origin.index(leaf) : null;
    Bridge.call("compare", Bridge.map(new Object[] {
      "identity", index == null ? null : index.identity(), "stream", stream, "kind", Mark.kind(mark), "columns", names, "query", Mark.query(mark)}), objects);
    Project made = (Project) objects.get("plan");
    HashMap back = new HashMap();
    for (int i = 0; i < parts.size(); i++) back.put(((Alias) parts.get(i)).exprId(), columns.get(i));
    return renamed(((Alias) made.projectList().head()).child(), back);
  }
}
