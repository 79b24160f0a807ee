package io.indextables;

import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.command.RunnableCommand;
import org.apache.spark.sql.types.StructType;

/** A command of ours, which Spark runs once and at once. Spark copies its plans by giving a constructor what `productElement` says. */
public abstract class OwnCommand extends LogicalPlan implements RunnableCommand {
  private final scala.collection.immutable.Seq columns;

  OwnCommand(StructType columns) { this.columns = DataTypeUtils.toAttributes(columns); }

  public scala.collection.immutable.Seq output() { return columns; }
  public AttributeSet producedAttributes() { return outputSet(); }
  public Statistics stats() { return Statistics.DUMMY(); }
  public scala.collection.immutable.Seq children() { return CaseClasses.seq(new java.util.ArrayList()); }
  public LogicalPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) { return this; }
  public scala.collection.immutable.Seq nodePatterns() { return CaseClasses.seq(java.util.Collections.singletonList(TreePattern.COMMAND())); }
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(scala.collection.immutable.Seq patterns) { }

  public int productArity() { return 2; }
  public boolean canEqual(Object other) { return other instanceof OwnCommand && other.getClass() == getClass(); }
}
