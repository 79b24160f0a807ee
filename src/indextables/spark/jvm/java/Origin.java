package io.indextables;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** Where a column of a plan comes from: a leaf and the column there, followed through names and past rows, not through values. */
final class Origin {
  final LogicalPlan leaf;
  final Attribute column;

  private Origin(LogicalPlan leaf, Attribute column) {
    this.leaf = leaf;
    this.column = column;
  }

  /** Null for what is computed, or made of several columns, as by a union or an aggregate. */
  static Origin of(LogicalPlan plan, Attribute column) {
    if (!plan.outputSet().contains(column)) return null;
    if (plan.children().isEmpty()) return new Origin(plan, column);
    if (plan instanceof Project) {
      Attribute below = below((Project) plan, column);
      return below == null ? null : of((LogicalPlan) plan.children().apply(0), below);
    }
    if (!passes(plan)) return null;
    for (scala.collection.Iterator i = plan.children().iterator(); i.hasNext();) {
      Origin origin = of((LogicalPlan) i.next(), column);
      if (origin != null) return origin;
    }
    return null;
  }

  /** The column of a projection's child that it shows under a name; null for a computed one. */
  static Attribute below(Project plan, Attribute column) {
    for (scala.collection.Iterator i = plan.projectList().iterator(); i.hasNext();) {
      NamedExpression item = (NamedExpression) i.next();
      if (!item.exprId().equals(column.exprId())) continue;
      if (item instanceof Attribute) return (Attribute) item;
      Object child = item instanceof Alias ? ((Alias) item).child() : null;
      return child instanceof Attribute ? (Attribute) child : null;
    }
    return null;
  }

  /** Whether the columns of a plan are those of its children, and more of them do not change its rows. */
  static boolean passes(LogicalPlan plan) {
    return plan instanceof Filter || plan instanceof Join || plan instanceof Sort || plan instanceof LocalLimit
      || plan instanceof GlobalLimit || plan instanceof Offset || plan instanceof Window || plan instanceof Generate
      || plan instanceof SubqueryAlias || plan instanceof Sample || plan instanceof RepartitionOperation;
  }

  /** Our file index behind a relation; null for any other plan. */
  static LogFileIndex index(LogicalPlan leaf) {
    if (!(leaf instanceof LogicalRelation)) return null;
    Object relation = CaseClasses.field(leaf, "relation");
    if (!(relation instanceof HadoopFsRelation) || !(((HadoopFsRelation) relation).location() instanceof LogFileIndex)) return null;
    return (LogFileIndex) ((HadoopFsRelation) relation).location();
  }

  static boolean ours(LogicalPlan leaf) {
    if (index(leaf) != null) return true;
    if (!(leaf instanceof DataSourceV2Relation)) return false;
    Object table = CaseClasses.field(leaf, "table");
    return table instanceof VersionTable
      || (table instanceof RowLevelOperationTable && ((RowLevelOperationTable) table).operation() instanceof VersionTable.Operation);
  }

  /** Refuses a search in a Delta table whose rows a plan makes; one that is a relation is refused when it is searched. */
  static void requireIndex(LogicalPlan leaf) {
    Object table = leaf instanceof DataSourceV2Relation ? CaseClasses.field(leaf, "table") : null;
    if (table instanceof VersionTable && ((VersionTable) table).derived) ((VersionTable) table).refuseSearch();
  }

  /** The leaf of ours that all columns of a search come from, with those columns in the words of `SearchCall.about`; else null. */
  static Object[] of(scala.collection.immutable.Seq children, Expression mark) {
    List columns = SearchCall.attributes(mark);
    StringBuilder about = new StringBuilder();
    LogicalPlan leaf = null;
    for (int j = 0; j < columns.size(); j++) {
      Origin origin = null;
      for (scala.collection.Iterator i = children.iterator(); origin == null && i.hasNext();) origin = of((LogicalPlan) i.next(), (Attribute) columns.get(j));
      if (origin == null || (leaf != null && leaf != origin.leaf)) return null;
      leaf = origin.leaf;
      about.append(' ').append(origin.column.exprId().id());
    }
    return leaf == null ? null : new Object[] {leaf, about.toString()};
  }

  /** The columns of a leaf that `SearchCall.about` names. */
  static List columns(LogicalPlan leaf, String about) {
    String[] numbers = about.trim().split(" ");
    java.util.ArrayList columns = new java.util.ArrayList();
    for (int i = 0; i < numbers.length; i++) {
      for (scala.collection.Iterator j = leaf.output().iterator(); j.hasNext();) {
        Attribute column = (Attribute) j.next();
        if (String.valueOf(column.exprId().id()).equals(numbers[i])) columns.add(column);
      }
    }
    return columns;
  }

  /** Their names as the table spells them; in a statement they may be written in another case, or renamed. */
  static List names(LogicalPlan leaf, String about) {
    java.util.ArrayList names = new java.util.ArrayList(columns(leaf, about));
    for (int i = 0; i < names.size(); i++) names.set(i, ((Attribute) names.get(i)).name());
    return names;
  }
}
