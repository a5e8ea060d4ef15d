"""As much of Markdown as the project's documents use: blocks of code, paragraphs, tables, code in lines, links."""
import re
from dataclasses import dataclass, field


@dataclass
class Block:
    """Code that stands by itself, indented by four or fenced."""
    line: int  # of its first line, from 1
    lines: list
    before: str = ""  # the paragraph that introduces it
    language: str = ""  # what stands behind the fence

    @property
    def text(self):
        return "\n".join(self.lines)


@dataclass
class Document:
    blocks: list = field(default_factory=list)
    prose: list = field(default_factory=list)  # (line, paragraph): all that is no block; a row of a table is a paragraph
    tables: list = field(default_factory=list)  # (line, {heading: cell}), one for each row


def indented(line):
    return line.startswith("    ")


class Reader:
    def __init__(self, text):
        self.lines = text.splitlines()
        self.at = 0
        self.document = Document()

    def read(self):
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith("```"):
                self.fenced()
            elif indented(line) and (self.at == 0 or not self.lines[self.at - 1].strip()):
                self.block()
            elif line.startswith("|"):
                self.table()
            elif line.strip():
                self.paragraph()
            else:
                self.at += 1
        return self.document

    def add(self, start, lines, language=""):
        before = self.document.prose[-1][1] if self.document.prose else ""
        if lines:
            self.document.blocks.append(Block(start + 1, lines, before, language))

    def fenced(self):
        start = self.at + 1
        end = next((i for i in range(start, len(self.lines)) if self.lines[i].startswith("```")), len(self.lines))
        self.add(start, self.lines[start:end], self.lines[self.at][3:].strip())
        self.at = end + 1

    def block(self):
        start = self.at
        while self.at < len(self.lines) and (indented(self.lines[self.at]) or not self.lines[self.at].strip()):
            self.at += 1
        self.add(start, "\n".join(line[4:] for line in self.lines[start:self.at]).rstrip().splitlines())

    def table(self):
        names = cells(self.lines[self.at])
        while self.at < len(self.lines) and self.lines[self.at].startswith("|"):
            self.document.prose.append((self.at + 1, self.lines[self.at]))
            row = cells(self.lines[self.at])
            if row != names and not all(re.fullmatch(r":?-+:?", cell) for cell in row):
                self.document.tables.append((self.at + 1, dict(zip(names, row))))
            self.at += 1

    def paragraph(self):
        start = self.at
        while self.at < len(self.lines) and self.lines[self.at].strip() and not self.lines[self.at].startswith(("|", "```")):
            self.at += 1
        self.document.prose.append((start + 1, "\n".join(self.lines[start:self.at])))


def cells(row):
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def read(text):
    return Reader(text).read()


def codes(paragraph):
    """(line within the paragraph, from 0; text) of each piece of code in it. One that is broken over lines is joined."""
    for found in re.finditer(r"`([^`]+)`", paragraph):
        yield paragraph.count("\n", 0, found.start()), " ".join(found.group(1).split())


def links(paragraph):
    """(line within the paragraph, target) of each link and picture."""
    for found in re.finditer(r"\]\(([^)\s]+)\)", paragraph):
        yield paragraph.count("\n", 0, found.start()), found.group(1)


def is_code(block):
    """A program in C or C++, rather than commands or what one prints."""
    return block.lines[0].startswith("#include") or bool(re.search(r";\s*(/\*.*\*/)?$", block.text)) or \
        block.language in ("c", "cpp", "c++", "cuda", "python")


def is_data(block):
    """JSON, say."""
    return block.text.lstrip().startswith(("{", "[", "<")) or block.language in ("json", "xml", "yaml", "ini")


def is_cmake(block):
    return block.lines[0].startswith("cmake_minimum_required(")
