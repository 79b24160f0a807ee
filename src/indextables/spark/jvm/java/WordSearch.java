package io.indextables;

import java.util.List;

/**
 * Whether a text has all of some words, between boundaries of words as Unicode defines them (UAX #29).
 *
 * The same rules are in `predicate/word_breaks.py`, whose table of classes is used here: Spark 3.5 has no ICU.
 */
public class WordSearch extends scala.runtime.AbstractFunction1 implements java.io.Serializable {
  /** The class of every character, in runs; the same text in every session of a version. */
  private static volatile String known = null;
  private static volatile byte[] expanded = null;

  private final String classes = known;
  private final String[] words;

  WordSearch(List words) { this.words = (String[]) words.toArray(new String[0]); }

  static void know(String classes) { known = classes; }

  public Object apply(Object text) { return text == null ? null : Boolean.valueOf(has((String) text)); }

  boolean has(String text) {
    for (int i = 0; i < words.length; i++) if (text.indexOf(words[i]) < 0) return false;
    int[] chars = text.codePoints().toArray();
    boolean[] breaks = boundaries(chars, table(classes));
    for (int i = 0; i < words.length; i++) if (!stands(chars, breaks, words[i].codePoints().toArray())) return false;
    return true;
  }

  private static boolean stands(int[] chars, boolean[] breaks, int[] word) {
    for (int at = 0; at + word.length <= chars.length; at++) {
      if (!breaks[at] || !breaks[at + word.length]) continue;
      int same = 0;
      while (same < word.length && chars[at + same] == word[same]) same++;
      if (same == word.length) return true;
    }
    return false;
  }

  private static byte[] table(String classes) {
    byte[] table = expanded;
    if (table != null) return table;
    table = new byte[0x110000];
    int at = 0;
    for (int i = 0; i < classes.length();) {
      byte letter = (byte) classes.charAt(i++);
      int count = 0;
      while (i < classes.length() && Character.isDigit(classes.charAt(i))) count = count * 10 + (classes.charAt(i++) - '0');
      for (int j = count == 0 ? 1 : count; j > 0; j--) table[at++] = letter;
    }
    expanded = table;
    return table;
  }

  private static boolean in(String letters, int kind) { return letters.indexOf(kind) >= 0; }

  /** Whether a word may begin before each character; one more for the end. */
  static boolean[] boundaries(int[] chars, byte[] table) {
    boolean[] breaks = new boolean[chars.length + 1];
    int[] raw = new int[chars.length];
    int[] base = new int[chars.length];
    int count = 0;
    for (int i = 0; i < chars.length; i++) {
      raw[i] = table[chars[i]];
      // WB4: what extends a character is no character of its own, but at the beginning of a text or line.
      if (i == 0 || !in("EFZ", raw[i]) || in("Rnv", raw[i - 1])) base[count++] = i;
    }
    int indicators = 0;
    for (int k = 0; k < count; k++) {
      int here = raw[base[k]];
      int last = k > 0 ? raw[base[k - 1]] : 0;
      int earlier = k > 1 ? raw[base[k - 2]] : 0;
      int after = k + 1 < count ? raw[base[k + 1]] : 0;
      int near = base[k] > 0 ? raw[base[k] - 1] : 0;
      boolean joined = (near == 'R' && here == 'n') || (near == 'Z' && in("pa", here)) || (near == 'W' && here == 'W')
        || (here == 'I' && indicators % 2 == 1) || joined(earlier, last, here, after);
      indicators = here == 'I' ? indicators + 1 : 0;
      breaks[base[k]] = k == 0 || !joined;
    }
    breaks[chars.length] = true;
    return breaks;
  }

  /** Rules WB5 to WB13b. */
  private static boolean joined(int earlier, int last, int here, int after) {
    if (in("AaHN", last) && in("AaHN", here)) return true;
    if (in("AaH", last) && in("LBS", here) && in("AaH", after)) return true;
    if (in("AaH", earlier) && in("LBS", last) && in("AaH", here)) return true;
    if (last == 'H' && (here == 'S' || (here == 'D' && after == 'H'))) return true;
    if (earlier == 'H' && last == 'D' && here == 'H') return true;
    if (earlier == 'N' && in("MBS", last) && here == 'N') return true;
    if (last == 'N' && in("MBS", here) && after == 'N') return true;
    if (last == 'K' && here == 'K') return true;
    return (in("AaHNK_", last) && here == '_') || (last == '_' && in("AaHNK", here));
  }

  public boolean equals(Object other) { return other instanceof WordSearch && java.util.Arrays.equals(words, ((WordSearch) other).words); }

  public int hashCode() { return java.util.Arrays.hashCode(words); }
}
