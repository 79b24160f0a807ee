package io.indextables;

import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;

/** The session that asks, and the names it knows. */
final class Sessions {
  private Sessions() { }

  static org.apache.spark.sql.classic.SparkSession active() {
    scala.Option session = org.apache.spark.sql.classic.SparkSession$.MODULE$.getActiveSession();
    if (session.isEmpty()) session = org.apache.spark.sql.classic.SparkSession$.MODULE$.getDefaultSession();
    if (session.isEmpty()) throw new IllegalStateException("IndexTables was asked outside of a Spark session");
    return (org.apache.spark.sql.classic.SparkSession) session.get();
  }

  static SessionCatalog catalog() { return active().sessionState().catalog(); }

  static TableIdentifier name(Identifier ident) {
    String database = ident.namespace().length == 0 ? "default" : ident.namespace()[0];
    return new TableIdentifier(ident.name(), scala.Option.apply(database));
  }
}
