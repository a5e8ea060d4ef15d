"""Finds out whether a text that a document quotes is one that the program can print.

The program's texts are the string literals of its sources. A quote must be made of whole literals, one after the other,
with their placeholders filled in: by numbers, by names, or by literals again. It may begin and end anywhere, and "..."
stands for what the document leaves out.
"""
import re
from functools import lru_cache

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:[^\'\\\n]|\\.)\'|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
GAP = re.compile(r"\{[^{}\s]*\}|%[-+0-9.]*(?:hh|h|ll|l|z)?[a-zA-Z]")
WORD = re.compile(r"[A-Za-z][A-Za-z'-]+")
ELISION = re.compile(r"\.\.\.|…")
# Numbers and what has one in it, lists of them, and the hosts of the documents' examples.
VALUE = re.compile(r"(?:\S*\d\S*|vm)(?: (?:\S*\d\S*|and|[num]?s|min|[KMGTPE]iB))*")
GLUE = ("", " ", "# ", " : ", ", ", "; ", ": ", ". ", " (", ")", ").", ".", ",", ";")
ESCAPES = {"n": " ", "t": " ", '"': '"', "\\": "\\"}
DEPTH = 4  # how often a placeholder is filled by a text with placeholders


def strings(source):
    """The literals of a C or C++ source; those that stand side by side are one."""
    text, joined = "", False
    at = 0
    for found in TOKEN.finditer(source):
        between, at = source[at:found.start()], found.end()
        if not found.group().startswith('"'):
            if found.group().startswith("/"):  # a comment is as good as a space
                at = found.end()
                joined = joined and not between.strip()
            continue
        piece = STRING.fullmatch(found.group()).group(1)
        if joined and not between.strip():
            text += piece
        else:
            if text:
                yield text
            text = piece
        joined = True
    if text:
        yield text


def unescaped(text):
    return re.sub(r"\\(.)", lambda found: ESCAPES.get(found.group(1), found.group(1)), text)


def pieces(literal):
    """A literal's fixed parts, and None for each placeholder."""
    parts, at = [], 0
    for found in GAP.finditer(literal):
        parts += [literal[at:found.start()], None]
        at = found.end()
    parts.append(literal[at:])
    return tuple(part and part.replace("{{", "{").replace("}}", "}") for part in parts if part != "")


class Texts:
    def __init__(self, sources):
        """`sources`: the texts of source files."""
        self.formats, self.names = set(), set()
        for source in sources:
            for literal in strings(source):
                self.add(" ".join(unescaped(literal).split(" ")))
            for one, many in re.findall(r'agree\([^"]*"([^"]+)",\s*"([^"]+)"\)', source):
                self.names |= {one, many}

    def add(self, literal):
        parts = pieces(literal)
        fixed = " ".join(part for part in parts if part)
        words = len(WORD.findall(fixed))
        if words >= 2 or (words == 1 and None in parts):
            self.formats.add(parts)
        elif words == 1 and re.fullmatch(r"[A-Za-z0-9]+(-[a-z0-9]+)*", literal.strip()):
            self.names.add(literal.strip())

    def can_say(self, quote):
        """Whether every part between what was left out is made of the program's texts."""
        fragments = [" ".join(part.split()) for part in ELISION.split(quote)]
        return all(not WORD.search(part) or Fragment(self, part).is_said() for part in fragments)


class Fragment:
    """A text without elisions. Positions are between its characters."""

    def __init__(self, texts, text):
        self.text, self.end = text, len(text)
        self.names = texts.names
        self.formats = [parts for parts in texts.formats if self.may_show(parts)]
        self.after = lru_cache(maxsize=None)(self.after_unit)
        self.reach = lru_cache(maxsize=None)(self.after_units)

    def may_show(self, parts):
        """Some fixed part with a word in it is here, or is cut off at an end."""
        return any(part and WORD.search(part) and (part.strip() in self.text or self.is_cut(part)) for part in parts)

    def is_cut(self, part):
        return any(self.text.startswith(tail) for tail in tails(part)) or \
            any(self.text.endswith(head) for head in heads(part))

    def is_said(self):
        starts = set(self.reach(0, DEPTH))
        for parts in self.formats:  # the first may have begun before
            for k, part in enumerate(parts):
                for tail in tails(part) if part else ():
                    starts |= set(self.along((tail, *parts[k + 1:]), 0, DEPTH))
                if part is None and k > 0:
                    starts |= set(self.along(parts[k:], 0, DEPTH))
        return any(self.end in self.reach(start, DEPTH) for start in starts)

    def after_units(self, start, depth):
        """Where a row of units can end that begins here."""
        ends, new = {start}, [start]
        while new:
            at = new.pop()
            for glue in GLUE:
                if self.text.startswith(glue, at):
                    for end in self.after(at + len(glue), depth) | {at + len(glue)}:
                        if end not in ends:
                            ends.add(end)
                            new.append(end)
        return frozenset(ends)

    def after_unit(self, start, depth):
        """Where one can end: a value, a name or a format."""
        ends = set()
        for end in range(start + 1, self.end + 1):
            if end < self.end and self.text[end - 1].isalnum() and self.text[end].isalnum():
                continue  # in the middle of a word
            part = self.text[start:end]
            if VALUE.fullmatch(part) or part in self.names:
                ends.add(end)
        if depth > 0:
            for parts in self.formats:
                ends |= set(self.along(parts, start, depth))
        return frozenset(ends)

    def along(self, parts, at, depth):
        """Where the text of a format can end, or the text itself within it."""
        if not parts:
            return [at]
        if at == self.end:
            return [at] if len(parts) else []
        first, rest = parts[0], parts[1:]
        if first is not None:
            if self.text.startswith(first, at):
                return self.along(rest, at + len(first), depth)
            return [self.end] if first.startswith(self.text[at:]) and self.text[at:] in heads(first) else []
        fills = self.reach(at, depth - 1)
        return [end for fill in fills for end in self.along(rest, fill, depth)]


@lru_cache(maxsize=None)
def tails(part):
    """What is left of a text that is cut at the beginning of a word."""
    return tuple(part[found.start():] for found in re.finditer(r"(?<![A-Za-z])\S", part) if WORD.search(part[found.start():]))


@lru_cache(maxsize=None)
def heads(part):
    return tuple(part[:found.end()] for found in re.finditer(r"\S(?![A-Za-z])", part) if WORD.search(part[:found.end()]))
