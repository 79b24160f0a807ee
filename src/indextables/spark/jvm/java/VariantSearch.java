package io.indextables;

// since 4.0
import java.util.List;
import org.apache.spark.types.variant.Variant;
import org.apache.spark.types.variant.VariantUtil;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/** Whether one of the texts in a variant matches; null where none does and one of its values is null. */
public class VariantSearch extends scala.runtime.AbstractFunction1 implements java.io.Serializable {
  private final WordSearch words;
  private final String pattern;
  private final boolean anyCase;

  VariantSearch(List words, boolean wholeWords, String pattern, boolean anyCase) {
    this.words = wholeWords ? new WordSearch(words) : null;
    this.pattern = pattern;
    this.anyCase = anyCase;
  }

  public Object apply(Object value) {
    if (value == null) return null;
    VariantVal variant = (VariantVal) value;
    return in(new Variant(variant.getValue(), variant.getMetadata()));
  }

  private Boolean in(Variant value) {
    VariantUtil.Type type = value.getType();
    if (type == VariantUtil.Type.NULL) return null;
    if (type == VariantUtil.Type.STRING) return Boolean.valueOf(matches(value.getString()));
    boolean undecided = false;
    int size = type == VariantUtil.Type.OBJECT ? value.objectSize() : type == VariantUtil.Type.ARRAY ? value.arraySize() : 0;
    for (int i = 0; i < size; i++) {
      Boolean answer = in(type == VariantUtil.Type.OBJECT ? value.getFieldAtIndex(i).value : value.getElementAtIndex(i));
      if (answer == null) undecided = true;
      else if (answer.booleanValue()) return answer;
    }
    return undecided ? null : Boolean.FALSE;
  }

  private boolean matches(String text) {
    String compared = anyCase ? UTF8String.fromString(text).toLowerCase().toString() : text;
    return words == null ? compared.indexOf(pattern) >= 0 : words.has(compared);
  }

  public boolean equals(Object other) {
    if (!(other instanceof VariantSearch)) return false;
    VariantSearch that = (VariantSearch) other;
    return pattern.equals(that.pattern) && anyCase == that.anyCase && (words == null ? that.words == null : words.equals(that.words));
  }

  public int hashCode() { return pattern.hashCode(); }
}
// end
