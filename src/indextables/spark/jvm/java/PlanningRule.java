package io.indextables;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * An optimizer rule that runs before Spark plans its scans.
 *
 * Our tables become Spark's Parquet relation over our file index; overwrites and replaced rows become an append whose
 * write knows what it replaces. Nothing runs here: EXPLAIN plans too.
 */
public class PlanningRule extends Rule {
  /** The column of `marked`, and what it holds; `spark/write/job.py` counts it. */
  private static final String MARK = "__indextables_change";
  private static final int COPIED = 0;
  private static final int UPDATED = 1;
  private static final int INSERTED = 2;

  public TreeNode apply(TreeNode plan) { return replaced((LogicalPlan) plan); }

  static LogicalPlan replaced(LogicalPlan plan) {
    if (plan instanceof ReplaceData && ((ReplaceData) plan).operation() instanceof VersionTable.Operation) return rows((ReplaceData) plan);
    if (plan instanceof OverwritePartitionsDynamic && own(plan, "table") != null) return overwritten(plan, "dynamic", null);
    if (plan instanceof OverwriteByExpression && own(plan, "table") != null) {
      Expression condition = ((OverwriteByExpression) plan).deleteExpr();
      boolean all = condition instanceof Literal && Boolean.TRUE.equals(((Literal) condition).value());
      return overwritten(plan, all ? "overwrite" : "where", all ? null : Bridge.map(new Object[] {"tree", LogFileIndex.tree(condition), "text", condition.sql()}));
    }
    // DELETE without a condition empties the table, and Spark looks for the table itself then.
    if (plan instanceof DeleteFromTable && own(plan, "table") != null) return plan;
    if (plan instanceof AnalyzeTable && CaseClasses.field(plan, "child") instanceof ResolvedTable
        && CaseClasses.field(CaseClasses.field(plan, "child"), "table") instanceof VersionTable) {
      // The log has the statistics of every file already.
      return new NoopCommand("ANALYZE TABLE", CaseClasses.seq(new ArrayList()));
    }
    return scans(plan);
  }

  /** The table of ours that a field of a plan is a relation of; null for any other. */
  private static VersionTable own(LogicalPlan plan, String field) {
    Object relation = CaseClasses.field(plan, field);
    Object table = relation instanceof DataSourceV2Relation ? CaseClasses.field(relation, "table") : null;
    return table instanceof VersionTable ? (VersionTable) table : null;
  }

  private static LogicalPlan overwritten(LogicalPlan plan, String mode, Map where) {
    TableWrite writing = own(plan, "table").writing(CaseClasses.java(CaseClasses.field(plan, "writeOptions")));
    writing.mode = mode;
    writing.where = where;
    return append(CaseClasses.field(plan, "table"), scans((LogicalPlan) CaseClasses.field(plan, "query")), writing);
  }

  private static LogicalPlan append(Object table, LogicalPlan query, TableWrite writing) {
    return (LogicalPlan) CaseClasses.make(AppendData.class, new Object[] {
      "table", table, "query", query, "write", scala.Option.apply(writing), "analyzedQuery", scala.Option.apply(query)});
  }

  /** The rows of the files an operation touches, as they will be; which files those are is asked when it runs. */
  private static LogicalPlan rows(ReplaceData plan) {
    VersionTable.Operation operation = (VersionTable.Operation) plan.operation();
    LogicalPlan table = (LogicalPlan) CaseClasses.field(plan, "originalTable");
    ArrayList conjuncts = new ArrayList();
    split(plan.condition(), conjuncts);
    ArrayList trees = new ArrayList();
    for (int i = 0; i < conjuncts.size(); i++) {
      Expression part = (Expression) conjuncts.get(i);
      if (part.references().subsetOf(table.outputSet()) && !SubqueryExpression.hasSubquery(part)) trees.add(LogFileIndex.tree(part));
    }
    operation.conditions = trees;
    operation.complete = trees.size() == conjuncts.size();
    if (plan.groupFilterCondition().isDefined()) {
      LogicalPlan all = relation(operation.table, operation.probe(), table.output(), true);
      Expression test = (Expression) plan.groupFilterCondition().get();
      // A bare NULL has no type that a filter takes, and is true of no row.
      if (!(test.dataType() instanceof org.apache.spark.sql.types.BooleanType)) test = Literal$.MODULE$.FalseLiteral();
      operation.matching = new org.apache.spark.sql.catalyst.plans.logical.Filter(test, all);
    }
    LogicalPlan query = scans(plan.query());
    scala.collection.immutable.Seq columns = written(plan, query);
    if (operation.command == RowLevelOperation.Command.MERGE) operation.marked = marked(columns, query);
    TableWrite writing = new TableWrite(operation.table, new HashMap(), operation);
    return append(table, new Project(columns, query), writing);
  }

  /** What is written by MERGE, with a last column that says what becomes of each row; null where the plan does not say so. */
  private static LogicalPlan marked(scala.collection.immutable.Seq columns, LogicalPlan query) {
    Attribute mark = new AttributeReference(MARK, DataTypes.IntegerType, false,
      org.apache.spark.sql.types.Metadata.empty(), NamedExpression.newExprId(), CaseClasses.seq(new ArrayList()));
    LogicalPlan all = withMark(query, mark);
    return all == null ? null : new Project(with(columns, mark), all);
  }

  private static LogicalPlan withMark(LogicalPlan plan, Attribute mark) {
    if (plan instanceof Project) {
      LogicalPlan below = withMark((LogicalPlan) plan.children().head(), mark);
      return below == null ? null : new Project(with(((Project) plan).projectList(), mark), below);
    }
    if (!(plan instanceof MergeRows)) return null;
    MergeRows rows = (MergeRows) plan;
    return (LogicalPlan) CaseClasses.copy(rows, new Object[] {
      "matchedInstructions", marked(rows.matchedInstructions(), UPDATED, COPIED),
      "notMatchedInstructions", marked(rows.notMatchedInstructions(), INSERTED, INSERTED),
      "notMatchedBySourceInstructions", marked(rows.notMatchedBySourceInstructions(), UPDATED, COPIED),
      "output", with(rows.output(), mark)});
  }

  /** Instructions that also give the mark; the last one is for rows that no clause of the statement is about. */
  private static scala.collection.immutable.Seq marked(scala.collection.immutable.Seq instructions, int mark, int last) {
    ArrayList all = new ArrayList();
    for (int i = 0; i < instructions.size(); i++) {
      Object instruction = instructions.apply(i);
      Literal given = new Literal(Integer.valueOf(i == instructions.size() - 1 ? last : mark), DataTypes.IntegerType);
      if (instruction instanceof MergeRows.Keep) instruction = CaseClasses.copy(instruction, new Object[] {"output", with(((MergeRows.Keep) instruction).output(), given)});
      all.add(instruction);
    }
    return CaseClasses.seq(all);
  }

  private static scala.collection.immutable.Seq with(scala.collection.immutable.Seq columns, Object last) {
    ArrayList all = new ArrayList();
    for (scala.collection.Iterator i = columns.iterator(); i.hasNext();) all.add(i.next());
    all.add(last);
    return CaseClasses.seq(all);
  }

  /** The columns of a query that are written; the others say what to do with a row, or where it was. */
  private static scala.collection.immutable.Seq written(ReplaceData plan, LogicalPlan query) {
    // since 4.0
    scala.collection.immutable.IndexedSeq ordinals = plan.projections().rowProjection().colOrdinals();
    ArrayList columns = new ArrayList();
    for (int i = 0; i < ordinals.size(); i++) columns.add(query.output().apply(((Number) ordinals.apply(i)).intValue()));
    return CaseClasses.seq(columns);
    // end
    // until 4.0
    return plan.dataInput();
    // end
  }

  static void split(Expression e, List into) {
    if (e instanceof And) {
      split(((And) e).left(), into);
      split(((And) e).right(), into);
    } else {
      into.add(e);
    }
  }

  private static LogicalPlan scans(LogicalPlan plan) {
    if (plan instanceof DataSourceV2Relation) {
      Object table = CaseClasses.field(plan, "table");
      if (table instanceof VersionTable) {
        // The columns of the relation are those of rows: the option came too late for it.
        if (((CaseInsensitiveStringMap) CaseClasses.field(plan, "options")).getBoolean("readChangeFeed", false)) {
          throw new UnsupportedOperationException(table + ": read the changes of a named table with table_changes('name', first), or by its path with load(path)");
        }
        return relation((VersionTable) table, ((VersionTable) table).relation(null), plan.output(), false);
      }
      if (table instanceof RowLevelOperationTable && ((RowLevelOperationTable) table).operation() instanceof VersionTable.Operation) {
        VersionTable.Operation operation = (VersionTable.Operation) ((RowLevelOperationTable) table).operation();
        return relation(operation.table, operation.target(), plan.output(), false);
      }
    }
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

  /** A relation of a table, under the columns that the plan already refers to. */
  private static LogicalPlan relation(VersionTable table, BaseRelation relation, scala.collection.immutable.Seq output, boolean withFile) {
    LogicalRelation made = LogicalRelation$.MODULE$.apply(relation, false);
    Attribute file = (Attribute) made.metadataOutput().head();
    ArrayList columns = new ArrayList();
    for (scala.collection.Iterator i = output.iterator(); i.hasNext();) {
      Attribute column = (Attribute) i.next();
      boolean hidden = column.name().equals(file.name()) && table.schema.getFieldIndex(file.name()).isEmpty();
      columns.add(hidden ? file.withExprId(column.exprId()) : column);
    }
    if (withFile) columns.add(file);
    return (LogicalPlan) CaseClasses.copy(made, new Object[] {"output", CaseClasses.seq(columns)});
  }
}
