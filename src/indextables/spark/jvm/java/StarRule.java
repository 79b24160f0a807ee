package io.indextables;

// until 4.0
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.analysis.Star;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** Expands `struct(*)` in conditions, which Spark 3.5 does in a SELECT list only: a search in all columns is written so. */
public class StarRule extends Rule {
  public TreeNode apply(TreeNode plan) { return expanded((LogicalPlan) plan); }

  /** Puts it into a session that is running: new ones get theirs from the extensions. */
  static void teach(org.apache.spark.sql.SparkSession session) {
    Object analyzer = session.sessionState().analyzer();
    ArrayList rules = new ArrayList();
    for (scala.collection.Iterator i = session.sessionState().analyzer().extendedResolutionRules().iterator(); i.hasNext();) {
      Object rule = i.next();
      if (rule instanceof StarRule) return;
      rules.add(rule);
    }
    rules.add(new StarRule());
    SearchParser.put(analyzer, "extendedResolutionRules", CaseClasses.seq(rules));
  }

  private static LogicalPlan expanded(LogicalPlan plan) {
    if (plan.resolved()) return plan;
    ArrayList children = new ArrayList();
    boolean changed = false;
    for (scala.collection.Iterator i = plan.children().iterator(); i.hasNext();) {
      LogicalPlan child = (LogicalPlan) i.next();
      LogicalPlan now = expanded(child);
      changed = changed || now != child;
      children.add(now);
    }
    LogicalPlan result = changed ? (LogicalPlan) plan.withNewChildren(CaseClasses.seq(children)) : plan;
    if (!result.childrenResolved() || result instanceof Project || result instanceof Aggregate) return result;
    return (LogicalPlan) result.mapExpressions(new Expanding(result));
  }

  /** An expression of a plan, with the columns of the plan's children for each star in a struct. */
  public static class Expanding extends scala.runtime.AbstractFunction1 {
    final LogicalPlan plan;
    Expanding(LogicalPlan plan) { this.plan = plan; }

    public Object apply(Object expression) {
      if (!(expression instanceof CreateNamedStruct)) return ((Expression) expression).mapChildren(this);
      ArrayList fields = new ArrayList();
      boolean changed = false;
      scala.collection.Iterator i = ((Expression) expression).children().iterator();
      while (i.hasNext()) {
        Object name = i.next();
        Object value = i.next();
        if (!(value instanceof Star)) {
          fields.add(name);
          fields.add(value);
          continue;
        }
        changed = true;
        LogicalPlan input = plan.children().size() == 1 ? (LogicalPlan) plan.children().head() : plan;
        for (scala.collection.Iterator j = ((Star) value).expand(input, plan.conf().resolver()).iterator(); j.hasNext();) {
          NamedExpression column = (NamedExpression) j.next();
          fields.add(Literal$.MODULE$.apply(column.name()));
          fields.add(column);
        }
      }
      return changed ? new CreateNamedStruct(CaseClasses.seq(fields)) : expression;
    }
  }

  /** For `injectResolutionRule`. */
  public static class Made extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new StarRule(); }
  }
}
// end
