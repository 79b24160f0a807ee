package io.indextables;

import java.lang.reflect.Constructor;
import java.lang.reflect.Parameter;
import java.util.List;

/** Scala case classes, read and made by the names of their fields, since their number differs between versions of Spark; and Scala's collections. */
final class CaseClasses {
  private CaseClasses() { }

  /** A field; Janino cannot call an accessor that has two return types. */
  static Object field(Object product, String name) {
    scala.Product p = (scala.Product) product;
    Parameter[] fields = widest(product.getClass()).getParameters();
    for (int i = 0; i < p.productArity(); i++) if (fields[i].getName().equals(name)) return p.productElement(i);
    throw new IllegalStateException(product.getClass().getName() + " has no " + name);
  }

  /** The same with some fields changed. */
  static Object copy(Object product, Object[] pairs) {
    scala.Product p = (scala.Product) product;
    Constructor constructor = widest(product.getClass());
    Parameter[] fields = constructor.getParameters();
    Object[] values = new Object[fields.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = p.productElement(i);
      for (int j = 0; j < pairs.length; j += 2) if (fields[i].getName().equals(pairs[j])) values[i] = pairs[j + 1];
    }
    return instance(constructor, values);
  }

  /** One from named fields; what is not named has its default, or is false, empty or null. */
  static Object make(Class type, Object[] pairs) {
    Constructor constructor = widest(type);
    Parameter[] fields = constructor.getParameters();
    Object[] values = new Object[fields.length];
    for (int i = 0; i < fields.length; i++) {
      values[i] = initial(type, i, fields[i].getType());
      for (int j = 0; j < pairs.length; j += 2) if (fields[i].getName().equals(pairs[j])) values[i] = pairs[j + 1];
    }
    return instance(constructor, values);
  }

  /** The constructor of the case class itself; others leave fields out. */
  private static Constructor widest(Class type) {
    Constructor[] constructors = type.getConstructors();
    Constructor most = constructors[0];
    for (int i = 1; i < constructors.length; i++) if (constructors[i].getParameterCount() > most.getParameterCount()) most = constructors[i];
    return most;
  }

  private static Object initial(Class type, int at, Class kind) {
    try {
      Class companion = Class.forName(type.getName() + "$", true, type.getClassLoader());
      Object module = companion.getField("MODULE$").get(null);
      return companion.getMethod("$lessinit$greater$default$" + (at + 1), new Class[0]).invoke(module, new Object[0]);
    } catch (NoSuchMethodException none) {
      if (kind == Boolean.TYPE) return Boolean.FALSE;
      return kind == scala.collection.immutable.Map.class ? scala.collection.immutable.Map$.MODULE$.empty() : null;
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Object instance(Constructor constructor, Object[] values) {
    try {
      return constructor.newInstance(values);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  static scala.collection.immutable.Seq seq(List list) {
    return ((scala.collection.Iterable) scala.collection.JavaConverters.asScalaBufferConverter(list).asScala()).toList();
  }

  static java.util.Map java(Object map) {
    return (java.util.Map) scala.collection.JavaConverters.mapAsJavaMapConverter((scala.collection.Map) map).asJava();
  }

  static Object scalaMap(java.util.Map map) {
    Object made = scala.collection.immutable.Map$.MODULE$.empty();
    for (java.util.Iterator i = map.keySet().iterator(); i.hasNext();) {
      Object key = i.next();
      made = ((scala.collection.immutable.Map) made).updated(key, map.get(key));
    }
    return made;
  }
}
