"""Write the table of Unicode's word break classes, from the ICU that PySpark 4 carries.

Run it after a release of PySpark with a newer Unicode: python scripts/write_word_breaks.py
"""

import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src" / "indextables" / "predicate" / "word_breaks.txt"
WIDTH = 118
# By the numbers of ICU; what is pictographic as well has 100 more.
LETTERS = {
    0: "o", 1: "A", 2: "F", 3: "K", 4: "L", 5: "M", 6: "N", 7: "_", 8: "R", 9: "E", 10: "n", 11: "B",
    12: "v", 13: "I", 14: "H", 15: "S", 16: "D", 21: "Z", 22: "W", 100: "p", 101: "a",
}  # fmt: skip
JAVA = """
import com.ibm.icu.lang.*;
class Classes {
  public static void main(String[] none) {
    for (int c = 0; c < 0x110000; c++)
      System.out.println(UCharacter.getIntPropertyValue(c, UProperty.WORD_BREAK)
        + (UCharacter.hasBinaryProperty(c, UProperty.EXTENDED_PICTOGRAPHIC) ? 100 : 0));
  }
}
"""


def main() -> None:
    """Write the classes of all characters as runs: a letter, and how many characters have it if not one."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise SystemExit("install PySpark 4 first: it carries ICU")
    jars = Path(found.origin).parent / "jars" / "*"
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "Classes.java"
        source.write_text(JAVA)
        run = subprocess.run(["java", "-cp", str(jars), source], check=True, capture_output=True, text=True)
    runs: list[tuple[str, int]] = []
    for number in run.stdout.split():
        letter = LETTERS[int(number)]
        if runs and runs[-1][0] == letter:
            runs[-1] = letter, runs[-1][1] + 1
        else:
            runs.append((letter, 1))
    text = "".join(letter + (str(count) if count > 1 else "") for letter, count in runs)
    TARGET.write_text("\n".join(text[at : at + WIDTH] for at in range(0, len(text), WIDTH)) + "\n")


if __name__ == "__main__":
    main()
