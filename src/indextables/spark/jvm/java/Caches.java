package io.indextables;

import java.io.IOException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/**
 * What Spark has cached of a table is read again after a commit, by whatever name or path it was cached.
 *
 * Spark itself renews only what was cached under the name that a statement uses.
 */
public final class Caches {
  private Caches() { }

  public static void renew(SparkSession session, String uri) throws IOException {
    CacheManager caches = session.sharedState().cacheManager();
    if (caches.isEmpty()) return;
    Path root = qualified(session, uri);
    try {
      // Relations over our file index: views and DataFrames of a path.
      FileSystem files = root.getFileSystem(session.sessionState().newHadoopConf());
      caches.recacheByPath(session, root, files);
    } catch (IOException none) {
      // Without a file system for the path nothing is read by our file index.
    }
    ArrayList relations = relations(caches, session, root);
    for (int i = 0; i < relations.size(); i++) caches.recacheByPlan(session, (LogicalPlan) relations.get(i));
  }

  /** The tables of a catalog that lie at this path, as cached plans have them. */
  private static ArrayList relations(CacheManager caches, SparkSession session, Path root) throws IOException {
    ArrayList relations = new ArrayList();
    for (scala.collection.Iterator i = cached(caches); i.hasNext();) {
      LogicalPlan plan = ((CachedData) i.next()).plan();
      for (scala.collection.Iterator j = plan.collectLeaves().iterator(); j.hasNext();) {
        Object leaf = j.next();
        Object table = leaf instanceof DataSourceV2Relation ? CaseClasses.field(leaf, "table") : null;
        if (table instanceof VersionTable && qualified(session, ((VersionTable) table).path).equals(root)) relations.add(leaf);
      }
    }
    return relations;
  }

  /** Everything that is cached. Not public; every way around it would have to remember each name that a table was ever read by. */
  private static scala.collection.Iterator cached(CacheManager caches) {
    try {
      Method cached = CacheManager.class.getDeclaredMethod("cachedData", new Class[0]);
      cached.setAccessible(true);
      return ((scala.collection.Iterable) cached.invoke(caches, new Object[0])).iterator();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The plan whose rows a relation holds. */
  static LogicalPlan plan(InMemoryRelation relation) {
    return relation.cacheBuilder().logicalPlan(); // since 4.0
    // until 4.0
    for (scala.collection.Iterator i = cached(Sessions.active().sharedState().cacheManager()); i.hasNext();) {
      CachedData data = (CachedData) i.next();
      if (data.cachedRepresentation().cacheBuilder() == relation.cacheBuilder()) return data.plan();
    }
    throw new IllegalStateException("Spark has just dropped the cache that this query reads; run it again");
    // end
  }

  private static Path qualified(SparkSession session, String uri) throws IOException {
    Path path = new Path(uri);
    String scheme = path.toUri().getScheme();
    return scheme != null && !scheme.equals("file") ? path : path.getFileSystem(session.sessionState().newHadoopConf()).makeQualified(path);
  }
}
