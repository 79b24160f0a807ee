package io.indextables;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;

/** What the two catalogs do differently: where a name's table lies, and how the name is kept. */
interface TableNames {
  /** Whether the name is taken. */
  boolean exists(Identifier ident);

  /** Where the table of that name lies, or will; a place of the catalog's choosing is marked as managed. */
  String location(Identifier ident, HashMap entry);

  /** Keeps the name. */
  void enter(Identifier ident, HashMap entry);

  Table named(Identifier ident, Map when);
}
