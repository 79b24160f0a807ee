package io.indextables;

import java.util.ArrayList;
import java.util.HashMap;
import org.apache.spark.sql.catalyst.expressions.Expression;

/** `table_changes('t', first[, last])` in FROM: the changes of a table by its name or its path. Python makes the plan that reads them. */
public class ChangesFunction extends scala.runtime.AbstractFunction1 {
  static final String NAME = "table_changes";

  public Object apply(Object call) {
    ArrayList values = new ArrayList();
    for (scala.collection.Iterator i = ((scala.collection.immutable.Seq) call).iterator(); i.hasNext();) {
      Expression operand = (Expression) i.next();
      Object value = operand.foldable() ? operand.eval(null) : operand.sql();
      values.add(value == null || value instanceof Number ? value : value.toString());
    }
    HashMap objects = new HashMap();
    Bridge.call("changes", Bridge.map(new Object[] {"arguments", values}), objects);
    return objects.get("plan");
  }
}
