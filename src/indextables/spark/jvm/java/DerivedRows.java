package io.indextables;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/**
 * Puts the plan that makes the rows of a Delta table in the place of the table.
 *
 * It is for tables with deletion vectors or mapped columns, which no relation of files alone reads right. It runs among
 * the rules that move filters and drop columns, so that these reach the files. All other tables wait for `PlanningRule`.
 */
public class DerivedRows extends Rule {
  public TreeNode apply(TreeNode plan) { return replaced((LogicalPlan) plan); }

  private static LogicalPlan replaced(LogicalPlan plan) {
    if (plan instanceof DataSourceV2Relation) {
      Object table = CaseClasses.field(plan, "table");
      return table instanceof VersionTable && ((VersionTable) table).derived ? rows(plan, (VersionTable) table) : plan;
    }
    // Spark looks for the table itself there, and finds that it cannot be changed.
    if (plan instanceof DeleteFromTable) return plan;
    ArrayList children = new ArrayList();
    boolean changed = false;
    for (scala.collection.Iterator i = plan.children().iterator(); i.hasNext();) {
      LogicalPlan child = (LogicalPlan) i.next();
      LogicalPlan now = replaced(child);
      changed = changed || now != child;
      children.add(now);
    }
    return changed ? (LogicalPlan) plan.withNewChildren(CaseClasses.seq(children)) : plan;
  }

  /** The rows, under the columns that the plan already refers to. */
  private static LogicalPlan rows(LogicalPlan relation, VersionTable table) {
    LogicalPlan made = table.rows();
    ArrayList columns = new ArrayList();
    for (int i = 0; i < relation.output().size(); i++) {
      columns.add(SearchRule.as((Attribute) made.output().apply(i), (Attribute) relation.output().apply(i)));
    }
    return new Project(CaseClasses.seq(columns), made);
  }

  /** For `injectOptimizerRule`. */
  public static class Made extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new DerivedRows(); }
  }
}
