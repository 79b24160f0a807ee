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
    if (!DONE.add(extensions)) return;
    SearchCall.register(null, null);
    extensions.injectParser(new SearchParser.Made());
    extensions.injectResolutionRule(new StarRule.Made()); // until 4.0
    extensions.injectPostHocResolutionRule(new RowCounts.Made());
    extensions.injectOptimizerRule(new Seen());
    extensions.injectOptimizerRule(new DerivedRows.Made());
    extensions.injectPreCBORule(new Planned());
    extensions.injectPreCBORule(new CountingRule.Made());
    extensions.injectPreCBORule(new Searched());
  }

  /** What a session that runs already does not ask its extensions for any more. */
  public static void teach(org.apache.spark.sql.classic.SparkSession session) {
    install(session.extensions());
    SearchCall.register(session.sessionState().functionRegistry(), session.sessionState().tableFunctionRegistry());
    SearchParser.teach(session);
    RowCounts.teach(session);
    StarRule.teach(session); // until 4.0
  }

  public static class Planned extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new PlanningRule(); }
  }

  public static class Searched extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new SearchRule(); }
  }

  public static class Seen extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new SearchBinding(); }
  }
}
