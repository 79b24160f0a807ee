package io.indextables;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * DELETE, UPDATE or MERGE of a table of ours, with the numbers of rows it has changed as its result.
 *
 * Spark runs the commands below a command first. So the statement has run, and its operation knows the numbers, when this runs.
 */
public class RowCounts extends OwnCommand {
  private static final String AFFECTED = "num_affected_rows";
  private static final String[] BY_KIND = new String[] {"num_updated_rows", "num_deleted_rows", "num_inserted_rows"};

  private final LogicalPlan statement;
  private final RowLevelOperation.Command command;
  /** What counts the rows; null until Spark has rewritten the statement, which some versions do only after this is put over it. */
  private final VersionTable.Operation operation;

  public RowCounts(LogicalPlan statement, RowLevelOperation.Command command, VersionTable.Operation operation) {
    super(columns(command));
    this.statement = statement;
    this.command = command;
    this.operation = operation;
  }

  /** UPDATE and DELETE change rows in one way. */
  private static StructType columns(RowLevelOperation.Command command) {
    StructType columns = new StructType().add(AFFECTED, DataTypes.LongType);
    for (int i = 0; i < BY_KIND.length && command == RowLevelOperation.Command.MERGE; i++) columns = columns.add(BY_KIND[i], DataTypes.LongType);
    return columns;
  }

  public scala.collection.immutable.Seq run(SparkSession session) {
    Object[] values = new Object[output().size()];
    Long all = Long.valueOf(0L);
    for (int i = 0; i < BY_KIND.length; i++) {
      Object count = operation == null ? null : operation.counts.get(BY_KIND[i]);
      Long rows = count == null ? null : Long.valueOf(((Number) count).longValue());
      all = all == null || rows == null ? null : Long.valueOf(all.longValue() + rows.longValue());
      if (values.length > 1) values[i + 1] = rows;
    }
    values[0] = all;
    Row row = RowFactory.create(values);
    return CaseClasses.seq(Collections.singletonList(row));
  }

  public scala.collection.immutable.Seq children() { return CaseClasses.seq(Collections.singletonList(statement)); }
  public LogicalPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    LogicalPlan child = (LogicalPlan) children.apply(0);
    LogicalPlan counted = operation == null || child instanceof ReplaceData ? Reporting.over(child) : child;
    return counted instanceof RowCounts ? counted : new RowCounts(child, command, operation);
  }
  public int productArity() { return 3; }
  public Object productElement(int at) { return at == 0 ? statement : at == 1 ? command : operation; }
  public scala.collection.Iterator stringArgs() { return CaseClasses.seq(Collections.singletonList(command.name())).iterator(); }

  /** Puts it over every statement that changes rows of ours, as soon as Spark has resolved it. */
  public static class Reporting extends Rule {
    /** The number of fields of MERGE on Spark 3.5, which has no schema evolution. */
    private static final int COLUMNS_ARE_FIXED = 6;

    public TreeNode apply(TreeNode plan) {
      LogicalPlan statement = (LogicalPlan) plan;
      // Spark resolves a statement again when it runs it, below the command that counts already.
      return statement.analyzed() ? statement : over(statement);
    }

    static LogicalPlan over(LogicalPlan given) {
      LogicalPlan statement = withTypedCondition(given);
      if (statement instanceof ReplaceData && ((ReplaceData) statement).operation() instanceof VersionTable.Operation) {
        return of(statement, (VersionTable.Operation) ((ReplaceData) statement).operation());
      }
      if (statement instanceof DeleteFromTable) return emptying(statement);
      if (statement instanceof UpdateTable) return waiting(statement, "table", RowLevelOperation.Command.UPDATE);
      if (statement instanceof MergeIntoTable) return waiting(statement, "targetTable", RowLevelOperation.Command.MERGE);
      return statement instanceof V2WriteCommand ? inserting(statement) : statement;
    }

    /** `WHERE NULL` as a null of type boolean: Spark before 4.1 compares it with true after types have been made to agree. */
    private static LogicalPlan withTypedCondition(LogicalPlan statement) {
      boolean isUpdate = statement instanceof UpdateTable;
      if (!isUpdate && !(statement instanceof DeleteFromTable)) return statement;
      Object condition = CaseClasses.field(statement, "condition");
      if (isUpdate) condition = ((scala.Option) condition).isEmpty() ? null : ((scala.Option) condition).get();
      if (condition == null || !((Expression) condition).resolved() || !((Expression) condition).dataType().equals(DataTypes.NullType)) return statement;
      Expression typed = Literal.create(null, DataTypes.BooleanType);
      return (LogicalPlan) CaseClasses.copy(statement, new Object[] {"condition", isUpdate ? scala.Option.apply(typed) : typed});
    }

    private static LogicalPlan of(LogicalPlan statement, VersionTable.Operation operation) { return new RowCounts(statement, operation.command, operation); }

    /** A statement that Spark has not rewritten yet. */
    private static LogicalPlan waiting(LogicalPlan statement, String target, RowLevelOperation.Command command) {
      DataSourceV2Relation relation = relation((LogicalPlan) CaseClasses.field(statement, target));
      boolean isOurs = relation != null && CaseClasses.field(relation, "table") instanceof IndexTable;
      // until 4.1
      boolean mayEvolve = statement instanceof MergeIntoTable && ((scala.Product) statement).productArity() > COLUMNS_ARE_FIXED && Boolean.TRUE.equals(CaseClasses.field(statement, "withSchemaEvolution"));
      if (isOurs && mayEvolve) throw new UnsupportedOperationException("MERGE with schema evolution needs Spark 4.1: this one leaves new columns out without saying so. Add them first, with ALTER TABLE ... ADD COLUMN");
      // end
      return isOurs && statement.resolved() ? new RowCounts(statement, command, null) : statement;
    }

    /** DELETE of all rows, which Spark asks the table for; others are rewritten by then, or later. */
    private static LogicalPlan emptying(LogicalPlan statement) {
      DataSourceV2Relation relation = relation((LogicalPlan) CaseClasses.field(statement, "table"));
      Object table = relation == null ? null : CaseClasses.field(relation, "table");
      if (!(table instanceof IndexTable)) return statement;
      IndexTable emptied = (IndexTable) table;
      emptied.emptying = new VersionTable.Operation(emptied, RowLevelOperation.Command.DELETE);
      return of(statement, emptied.emptying);
    }

    /** MERGE that only inserts: Spark appends the source rows that find no row in the very relation they are appended to. */
    private static LogicalPlan inserting(LogicalPlan statement) {
      Object target = CaseClasses.field(statement, "table");
      Object table = target instanceof DataSourceV2Relation ? CaseClasses.field(target, "table") : null;
      if (!(table instanceof VersionTable) || !isLookedInto((LogicalPlan) target, (LogicalPlan) CaseClasses.field(statement, "query"))) return statement;
      VersionTable.Operation operation = new VersionTable.Operation((VersionTable) table, RowLevelOperation.Command.MERGE);
      operation.inserts = true;
      operation.conditions = new ArrayList();
      TableWrite writing = new TableWrite((VersionTable) table, new HashMap(), operation);
      return of((LogicalPlan) CaseClasses.copy(statement, new Object[] {"write", scala.Option.apply(writing)}), operation);
    }

    private static boolean isLookedInto(LogicalPlan target, LogicalPlan query) {
      if (query instanceof Join) {
        DataSourceV2Relation right = relation((LogicalPlan) ((Join) query).right());
        return ((Join) query).joinType().sql().equals("LEFT ANTI") && right != null && sameColumns(target, right);
      }
      return query.children().size() == 1 && isLookedInto(target, (LogicalPlan) query.children().head());
    }

    private static boolean sameColumns(LogicalPlan one, LogicalPlan other) {
      if (one.output().size() != other.output().size() || one.output().isEmpty()) return false;
      return ((Attribute) one.output().head()).exprId().equals(((Attribute) other.output().head()).exprId());
    }

    private static DataSourceV2Relation relation(LogicalPlan plan) {
      if (plan instanceof DataSourceV2Relation) return (DataSourceV2Relation) plan;
      return plan instanceof SubqueryAlias ? relation((LogicalPlan) plan.children().head()) : null;
    }
  }

  /** For `injectPostHocResolutionRule`. */
  public static class Made extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new Reporting(); }
  }

  /** Puts the rule into a session that is running: new ones get theirs from the extensions. */
  static void teach(org.apache.spark.sql.classic.SparkSession session) {
    ArrayList rules = new ArrayList();
    for (scala.collection.Iterator i = session.sessionState().analyzer().postHocResolutionRules().iterator(); i.hasNext();) {
      Object rule = i.next();
      if (rule instanceof Reporting) return;
      rules.add(rule);
    }
    rules.add(new Reporting());
    SearchParser.put(session.sessionState().analyzer(), "postHocResolutionRules", CaseClasses.seq(rules));
  }
}
