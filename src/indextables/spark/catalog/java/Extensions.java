package io.indextables;

import org.apache.spark.sql.SparkSessionExtensions;

/** `spark.sql.extensions`, or put into a running session, whose optimizer asks for its rules before every plan. */
public class Extensions extends scala.runtime.AbstractFunction1 {
  private static final java.util.Set DONE = java.util.Collections.newSetFromMap(new java.util.WeakHashMap());

  public Object apply(Object extensions) {
    install((SparkSessionExtensions) extensions);
    return scala.runtime.BoxedUnit.UNIT;
  }

  public static synchronized void install(SparkSessionExtensions extensions) {
    if (DONE.add(extensions)) extensions.injectPreCBORule(new Planned());
  }

  public static class Planned extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new Planning(); }
  }
}
