package io.indextables;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

/**
 * The one way from the JVM into Python.
 *
 * A request is a text with a token, because the port that Python listens on is open to every process of this machine.
 * Objects that cannot be text wait here under the number of their request; Python fetches them, and leaves its own,
 * over the other connection, which is authenticated.
 */
public final class Bridge {
  static final ObjectMapper JSON = new ObjectMapper();
  private static final ConcurrentHashMap PARKED = new ConcurrentHashMap();
  private static final AtomicLong NUMBERS = new AtomicLong();
  private static volatile Function python = null;
  private static volatile String token = null;

  private Bridge() { }

  public static void attach(Function side, String secret) {
    token = secret;
    python = side;
  }

  static void detach() { python = null; }

  /** Who answers; null when nobody does. */
  static Function side() { return python; }

  /** The objects of a request that is being answered. */
  public static Map parked(String number) { return (Map) PARKED.get(number); }

  /** A small map; keys and values alternate. */
  static Map map(Object[] pairs) {
    HashMap made = new HashMap();
    for (int i = 0; i < pairs.length; i += 2) if (pairs[i + 1] != null) made.put(pairs[i], pairs[i + 1]);
    return made;
  }

  static Map call(String op, Map request) { return call(op, request, new HashMap()); }

  /** Asks Python; its answer is a map, its failure an exception whose message leads back to it. */
  static Map call(String op, Map request, Map objects) {
    PythonProcess.ensure();
    Function side = python;
    if (side == null) throw new IllegalStateException("IndexTables has no Python side in this JVM; call indextables.connect(spark)");
    String number = String.valueOf(NUMBERS.incrementAndGet());
    objects.put("session", Sessions.active());
    PARKED.put(number, objects);
    try {
      Map sent = map(new Object[] {"token", token, "op", op, "number", number, "request", request});
      Map answer = (Map) JSON.readValue((String) side.apply(JSON.writeValueAsString(sent)), Map.class);
      if (answer.get("error") != null) throw new IllegalStateException((String) answer.get("error"));
      return (Map) answer.get("answer");
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new IllegalStateException("IndexTables could not read the answer to " + op, e);
    } catch (py4j.Py4JException e) {
      throw PythonProcess.lost(op, e);
    } finally {
      PARKED.remove(number);
    }
  }
}
