"""The grammar of queries: parses text into parts, each with its offset.

Nothing here knows a column; `syntax` gives the parts their meaning. Adjacent parts are
joined by the default operator; AND binds closer than OR. Only upper-case AND, OR and NOT are
operators, unless the rules say otherwise. An excluded part (`-a`, `!a`,
`NOT a`) is removed from the parts it is adjacent to; next to a written OR it is an
alternative of its own. Anything ambiguous is an error.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import NoReturn

from indextables.errors import QueryError
from indextables.index.query.parts import (
    Anything,
    BooleanPart,
    BoostedPart,
    InColumn,
    OneOf,
    ParsedQuery,
    QueryPart,
    QueryRules,
    RangePart,
    RegexPart,
    Text,
)
from indextables.index.query.patterns import Gap
from indextables.records import dataclass

LONGEST_QUERY = 100_000
DEEPEST_QUERY = 100
_QUOTE = 'put text with special characters in double quotes, for example "it\'s 12:30"'
_OTHER_QUOTES = "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+")
_COLONS_INSIDE = re.compile(r"(?:(?=[^:]*[0-9]|:)[0-9A-Fa-f.:TZ+-]+)?")
"""Pattern of text before a colon that is not a column: times and addresses hold colons and digits."""
_LIKE_OPERATORS = ("and", "or", "not")
"""Words that are operators in upper case."""
_PLAIN = QueryRules()


@dataclass(frozen=True, slots=True)
class _Operand:
    part: QueryPart
    sign: str
    """`+`, `-` or empty."""
    join: str
    """The operator before it: `and`, `or` or empty."""
    at: int


def read_query(text: str, rules: QueryRules = _PLAIN) -> ParsedQuery:
    """Parse a query by some rules."""
    if len(text) > LONGEST_QUERY:
        raise QueryError(f"the query is {len(text)} characters long; at most {LONGEST_QUERY} are read")
    if not text.strip():
        raise QueryError("the query is empty; '*' finds every row", query=text)
    parser = _Parser(text, rules)
    part = parser.expression(0)
    if parser.at < len(text):
        parser.bad(f"{parser.here()!r} closes no bracket", parser.at)
    return ParsedQuery(part, tuple(dict.fromkeys(parser.notes)))


class _Parser:
    def __init__(self, text: str, rules: QueryRules) -> None:
        self.text = text
        self.rules = rules
        self.at = 0
        self.notes: list[str] = []

    def bad(self, problem: str, at: int, advice: str = _QUOTE) -> NoReturn:
        """Raise the error for an offset in the query."""
        raise QueryError(
            f"cannot read the query {self.text!r}: {problem} at character {at + 1}; {advice}",
            query=self.text,
            position=at + 1,
        )

    # Looking

    def here(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def skip_spaces(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def keyword(self) -> str:
        """The bare word at this offset, if it could be an operator."""
        match = re.compile(r"[A-Za-z]+(?=[\s()]|$)").match(self.text, self.at)
        return match[0] if match else ""

    def ended(self) -> bool:
        self.skip_spaces()
        return self.at >= len(self.text) or self.here() in ")]}"

    # Adjacent parts

    def expression(self, depth: int) -> QueryPart:
        """Operands and their operators, up to the end or a closing bracket."""
        if depth > DEEPEST_QUERY:
            self.bad(f"more than {DEEPEST_QUERY} brackets inside each other", self.at, "ask for less at once")
        operands: list[_Operand] = []
        while not self.ended():
            join, at = self.join(bool(operands)), self.at
            if self.ended():
                self.bad("an operator lacks its right operand", at)
            operands.append(self.operand(join, depth, first=not operands))
        if not operands:
            self.bad(
                "there is nothing between the brackets", self.at, "write what to look for, or leave them"
            )
        return self.combined(operands)

    def join(self, follows: bool) -> str:
        """The operator before the next operand; empty when the two are adjacent."""
        at, word = self.at, self.keyword()
        if self.here(2) in ("&&", "||"):
            name, length = ("and" if self.here() == "&" else "or"), 2
        elif word in ("AND", "OR") or self.lowercase(("and", "or"), word, follows):
            name, length = word.lower(), len(word)
        else:
            return ""
        if not follows:
            self.bad(f"{self.here(length)} lacks its left operand", at)
        if word and word.islower():
            self.notes.append(
                f"{word!r} at character {at + 1} is read as the operator {word.upper()}; "
                f'for the word itself write "{word}"'
            )
        self.at += length
        self.skip_spaces()
        return name

    def lowercase(self, operators: tuple[str, ...], word: str, follows: bool) -> bool:
        """Whether a word is one of these operators by the rules: not if it is all there is in a bracket."""
        rest = self.text[self.at + len(word) :].lstrip()
        alone = not follows and (not rest or rest[0] == ")")
        return self.rules.lowercase_operators and word in operators and not alone

    def operand(self, join: str, depth: int, *, first: bool) -> _Operand:
        start = self.at
        sign = self.sign()
        word = self.keyword()
        if word in ("AND", "OR") or self.here(2) in ("&&", "||"):
            self.bad(f"{word or self.here(2)} lacks its left operand", self.at)
        if self.lowercase(("not",), word, not first):
            self.bad(
                "'not' in lower case",
                self.at,
                'write NOT to exclude what follows, or put the words in double quotes: "not found"',
            )
        if word in _LIKE_OPERATORS and not self.rules.lowercase_operators:
            self.notes.append(f"`{word}` is searched as a word; write {word.upper()} for the operator")
        return _Operand(self.boosted(self.primary(depth)), sign, join, start)

    def sign(self) -> str:
        """`+` for a part that must match, `-` for one that must not; NOT may be repeated."""
        sign = ""
        while True:
            at, char, word = self.at, self.here(), self.keyword()
            if word != "NOT" and char not in ("!", "-", "+"):
                return sign
            operator = "NOT" if word == "NOT" else char
            self.at += len(operator)
            if operator != "NOT" and sign:
                self.bad(f"{char!r} behind another sign", at)
            if operator != "NOT" and (self.at >= len(self.text) or self.here().isspace()):
                self.bad(
                    f"a lone {char!r}", at, f"write {char}word without a space, or put it in double quotes"
                )
            if self.ended():
                self.bad(f"{operator} lacks its operand", at)
            if operator != "NOT" and self.here() in "!-+":
                self.bad(f"{self.here()!r} behind another sign", self.at)
            sign = "+" if char == "+" else "" if sign else "-"

    def combined(self, operands: list[_Operand]) -> QueryPart:
        """Combine operands into one part: AND binds closer than OR."""
        groups: list[list[_Operand]] = []
        for one in operands:
            if groups and (one.join == "and" or (not one.join and self.rules.operator == "and")):
                groups[-1].append(one)
            else:
                groups.append([one])
        items = [self.grouped(group) for group in groups]
        if len(items) == 1:
            return BooleanPart(must_not=(items[0].part,)) if items[0].sign == "-" else items[0].part
        by_sign: dict[str, list[QueryPart]] = {"+": [], "": [], "-": []}
        joins = [one.join for one in items[1:]]
        for one, near in zip(items, zip(["", *joins], [*joins, ""], strict=True), strict=True):
            if "or" not in near:
                by_sign[one.sign].append(one.part)
            elif one.sign == "+":
                self.bad("'+' beside OR", one.at, "'+' says the part must match, OR that it need not")
            else:
                by_sign[""].append(BooleanPart(must_not=(one.part,)) if one.sign == "-" else one.part)
        return BooleanPart(tuple(by_sign["+"]), tuple(by_sign[""]), tuple(by_sign["-"]))

    def grouped(self, group: list[_Operand]) -> _Operand:
        """Combine operands joined by AND."""
        if len(group) == 1:
            return group[0]
        must = tuple(one.part for one in group if one.sign != "-")
        must_not = tuple(one.part for one in group if one.sign == "-")
        sign = "+" if any(one.sign == "+" for one in group) else ""
        return _Operand(BooleanPart(must=must, must_not=must_not), sign, group[0].join, group[0].at)

    # One part

    def primary(self, depth: int, *, value: bool = False) -> QueryPart:
        """A bracket, a range, a text, or a column with one of these; `value` is set after a column."""
        at, char = self.at, self.here()
        if char == "(":
            self.at += 1
            part = self.expression(depth + 1)
            if self.here() != ")":
                self.bad("expected ')' for the '('", at)
            self.at += 1
            self.boundary("a bracket", brackets=True)
            return part
        if char in "[{":
            return self.bounds()
        if char in "<>":
            return self.comparison()
        if char in "\"'":
            return self.quoted()
        if char == "/":
            return self.regular()
        if char in _OTHER_QUOTES:
            self.bad(f"the quotation mark {char}", at, "only the plain ones \" and ' quote a text")
        if char in "^~&|" or (char == ":" and not value):
            if char in "&|":
                self.single(char)
            self.bad(f"{char!r} with nothing before it", at)
        return self.word(depth, value=value)

    def single(self, char: str) -> NoReturn:
        word = "AND" if char == "&" else "OR"
        self.bad(f"a single {char!r}", self.at, f"write {char * 2} or {word} between two parts, or {_QUOTE}")

    def boosted(self, part: QueryPart) -> QueryPart:
        if self.here() != "^":
            return part
        at = self.at
        self.at += 1
        factor = self.number()
        if factor is None or not math.isfinite(factor):
            self.bad("'^' without a number", at, "write error^2 to let a part count double")
        self.boundary("a boost")
        return BoostedPart(part, factor)

    def number(self) -> float | None:
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return float(match[0])

    def boundary(self, what: str, *, brackets: bool = False) -> None:
        """Raise unless a space separates this part from the next."""
        allowed = ")^" if brackets or what != "a boost" else ")"
        if self.at < len(self.text) and not self.here().isspace() and self.here() not in allowed:
            if self.here(2) in ("&&", "||") or (self.here() in "&|"):
                return
            self.bad(f"{self.here()!r} right after {what}", self.at, f"put a space between, or {_QUOTE}")

    def bounds(self) -> RangePart:
        at, inclusive = self.at, self.here() == "["
        self.at += 1
        lower, _ = self.bound(at)
        self.skip_spaces()
        if self.here(2) != "TO" or self.here(3)[2:].strip():
            self.bad("a range without TO", at, "write column:[a TO b]; * leaves an end open")
        self.at += 2
        upper, _ = self.bound(at)
        self.skip_spaces()
        if self.here() not in ("]", "}"):
            self.bad("a range that is not closed", at, "write column:[a TO b]; * leaves an end open")
        closed = self.here() == "]"
        self.at += 1
        self.boundary("a range")
        return RangePart(lower, upper, inclusive, closed, at)

    def bound(self, at: int, ends: str = '[]{}()"') -> tuple[str | None, bool]:
        """One end of a range, and whether it was quoted; None if it is open."""
        self.skip_spaces()
        if self.here() in ('"', "'"):
            return self.quotation(), True
        start = self.at
        while self.at < len(self.text) and not self.here().isspace() and self.here() not in ends:
            self.at += 2 if self.here() == "\\" else 1
        word = self.text[start : self.at]
        if not word:
            self.bad("a range lacks one of its ends", at, "write column:[a TO b]; * leaves an end open")
        return (None if word == "*" else re.sub(r"\\(.)", r"\1", word, flags=re.DOTALL)), False

    def comparison(self) -> RangePart:
        at, below = self.at, self.here() == "<"
        self.at += 1
        equal = self.here() == "="
        self.at += int(equal)
        value, _ = self.bound(at, '[]{}()"^')
        if value is None:
            self.bad("a comparison without a value", at, "write column:>=5")
        if below:
            return RangePart(None, value, include_lower=True, include_upper=equal, at=at)
        return RangePart(value, None, include_lower=equal, include_upper=True, at=at)

    def quotation(self) -> str:
        """The text between two quotes. A backslash is literal except before a quote or another backslash."""
        start, mark = self.at, self.here()
        self.at += 1
        chars: list[str] = []
        while self.at < len(self.text):
            char = self.here()
            if char == mark:
                self.at += 1
                return "".join(chars)
            if char == "\\" and self.here(2)[1:] in ("\\", '"', "'"):
                self.at += 1
                char = self.here()
            chars.append(char)
            self.at += 1
        return self.bad(f"the quote {mark} is not closed", start, f"close it, or escape it as \\{mark}")

    def quoted(self) -> Text:
        at = self.at
        part = Text(self.quotation(), at, quoted=True)
        if self.here() == "*":
            self.at += 1
            part = replace(part, prefix=True)
        elif self.here() == "~":
            distance = self.distance('write "connection reset"~3 for up to three words between')
            part = replace(part, distance=distance)
        self.boundary("a quoted text")
        return part

    def distance(self, advice: str) -> int | None:
        """The whole number after `~`; None when there is none."""
        at = self.at
        self.at += 1
        number = self.number()
        if number is None:
            if self.text[at - 1] in "\"'":
                self.bad("'~' behind a quoted text lacks its number", at, advice)
            return None
        if number != int(number):
            self.bad(f"'~{number:g}' is not a whole number", at, advice)
        return int(number)

    def regular(self) -> RegexPart:
        at = self.at
        self.at += 1
        start = self.at
        while self.at < len(self.text) and self.here() != "/":
            self.at += 2 if self.here() == "\\" else 1
        if self.at >= len(self.text):
            self.bad("'/' begins a regular expression, which is not closed", at)
        expression = self.text[start : self.at].replace("\\/", "/")
        self.at += 1
        if self.at < len(self.text) and not self.here().isspace() and self.here() not in ")^":
            self.bad("'/' begins a regular expression, and text follows right after it", at)
        if not expression:
            self.bad("an empty regular expression", at, "write /err(or)?s?/")
        return RegexPart(expression, at)

    # Words

    def word(self, depth: int, *, value: bool) -> QueryPart:
        """A bare word with its wildcards, or the column before a colon."""
        at = self.at
        pieces = self.pieces(value=value)
        text = "".join(piece if isinstance(piece, str) else piece.value for piece in pieces)
        if self.here() == ":" and not value:
            return self.column(pieces, at, depth)
        if self.here() == "~":
            part = self.fuzzy(text, pieces, at)
        elif pieces == [Gap.MANY]:
            part = Anything(at)
        else:
            gaps = [number for number, piece in enumerate(pieces) if isinstance(piece, Gap)]
            last = gaps == [len(pieces) - 1] and pieces[-1] is Gap.MANY
            part = (
                Text("".join(str(piece) for piece in pieces[:-1]), at, prefix=True)
                if last
                else Text(text, at, shape=tuple(pieces) if gaps else ())
            )
        self.boundary("a word")
        return part

    def pieces(self, *, value: bool) -> list[str | Gap]:
        """The characters of a word: literal text, and the wildcards in it."""
        start = self.at
        pieces: list[str | Gap] = []
        literal: list[str] = []
        while self.at < len(self.text):
            char = self.here()
            if char.isspace() or char in ')^~"([{]}' or (char == ":" and not self.colon_inside(start, value)):
                break
            if char in "&|":
                if self.here(2) in ("&&", "||"):
                    break
                self.single(char)
            if char in "?*":
                pieces += ["".join(literal)] if literal else []
                literal = []
                pieces.append(Gap(char))
            elif char == "\\":
                if self.at + 1 >= len(self.text):
                    self.bad("a backslash at the end", self.at, "write \\\\ for a backslash itself")
                self.at += 1
                literal.append(self.here())
            else:
                literal.append(char)
            self.at += 1
        return [*pieces, "".join(literal)] if literal else pieces

    def colon_inside(self, start: int, value: bool) -> bool:
        return value and _COLONS_INSIDE.fullmatch(self.text, start, self.at) is not None

    def fuzzy(self, text: str, pieces: list[str | Gap], at: int) -> QueryPart:
        tilde = self.at
        distance = self.distance("write timeout~1 or timeout~2 for words that differ by one or two letters")
        if any(isinstance(piece, Gap) for piece in pieces):
            self.bad("'~' behind a word with wildcards", tilde, "use one or the other")
        return Text(text, at, distance=2 if distance is None else distance)

    def column(self, pieces: list[str | Gap], at: int, depth: int) -> QueryPart:
        """What follows `name:`."""
        self.at += 1
        every = pieces == [Gap.MANY]
        if not pieces:
            self.bad("':' with no column before it", at)
        if any(isinstance(piece, Gap) for piece in pieces) and not every:
            self.bad(
                "a wildcard in the name of a column", at, "name the column, or leave it out for all of them"
            )
        name = "".join(str(piece) for piece in pieces)
        self.skip_spaces()
        start, word = self.at, self.keyword()
        if self.ended():
            self.bad(f"nothing follows {name}:", at)
        if every and self.here() == "*":
            self.at += 1
            self.boundary("a word")
            return Anything(at)
        if every:
            self.bad("'*' in place of a column", at, "leave it out to look into all of them")
        if word == "IN" and (behind := re.compile(r"IN\s*\[").match(self.text, self.at)):
            self.at = behind.end()
            return InColumn(name, self.one_of(start), at)
        if word in ("AND", "OR", "NOT"):
            self.bad(f"{word} behind {name}:", start, f"write NOT {name}:word, or {name}:(a {word} b)")
        if self.here() in "!+-" and not re.compile(r"[+-][0-9.]").match(self.text, self.at):
            sign = self.here()
            self.bad(f"{sign!r} behind {name}:", start, f"write {sign}{name}:word")
        return InColumn(name, self.primary(depth, value=True), at)

    def one_of(self, at: int) -> OneOf:
        values: list[str] = []
        while True:
            self.skip_spaces()
            if self.here() == "]":
                self.at += 1
                self.boundary("a list")
                if not values:
                    self.bad("an empty list", at, "write column: IN [a b]")
                return OneOf(tuple(values), at)
            if self.at >= len(self.text):
                self.bad("a list that is not closed", at, "write column: IN [a b]")
            value, quoted = self.bound(at)
            if value is None and not quoted:
                self.bad("'*' in a list", at, "write column:* for any value")
            values.append(str(value))
