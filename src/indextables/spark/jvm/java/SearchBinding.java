package io.indextables;

import java.util.HashMap;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;

/**
 * Writes into every search which column of which relation it is about, before Spark infers conditions from equalities.
 *
 * From `a.text = b.text` and a search in `a.text` Spark would conclude the same search in `b.text`, which may be indexed in
 * another way or not at all.
 */
public class SearchBinding extends Rule {
  public TreeNode apply(TreeNode plan) { return seen((LogicalPlan) plan); }

  private static LogicalPlan seen(LogicalPlan plan) {
    if (!plan.containsPattern(TreePattern.SCALA_UDF())) return plan;
    java.util.ArrayList children = new java.util.ArrayList();
    boolean changed = false;
    for (scala.collection.Iterator i = plan.children().iterator(); i.hasNext();) {
      LogicalPlan child = (LogicalPlan) i.next();
      LogicalPlan now = seen(child);
      changed = changed || now != child;
      children.add(now);
    }
    LogicalPlan result = changed ? (LogicalPlan) plan.withNewChildren(CaseClasses.seq(children)) : plan;
    HashMap bound = new HashMap();
    List marks = SearchCall.in(result.expressions());
    for (int i = 0; i < marks.size(); i++) {
      Expression mark = (Expression) marks.get(i);
      if (SearchCall.first(mark).length() > 0) continue;
      Object[] origin = Origin.of(result.children(), mark);
      if (origin == null || !Origin.ours((LogicalPlan) origin[0])) continue;
      Origin.requireIndex((LogicalPlan) origin[0]);
      bound.put(SearchCall.key(mark), SearchCall.with(mark, SearchCall.column(mark), (String) origin[1]));
    }
    return bound.isEmpty() ? result : SearchRule.answered(result, bound);
  }
}
