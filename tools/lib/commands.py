"""Finds out whether the commands of a document would be accepted: that what they start exists, and knows their options."""
import json
import re
import shlex
import subprocess
from functools import lru_cache
from pathlib import Path

# Commands of the system's that documents may name. What they start in turn is looked at.
SYSTEM = {"[", "accelerate", "auditwheel", "az", "cat", "cc", "c++", "ccache", "cd", "chrt", "diff", "env", "export", "gdb", "kill",
          "ln", "ls", "mkdir", "mpirun", "pip", "pkg-config", "ps", "python", "rm", "setarch", "srun", "timeout", "torchfrtrace",
          "torchrun", "unset", "wait"}
# Under another name where a document's reader is.
ALIASES = {"prepared/run": "tests/gpu/run"}
CMAKE_OPTIONS = {"-S", "-B", "-G", "-D", "-j", "--build", "--install", "--prefix", "--preset", "--target"}
SCRIPTS = ("tools/", "tests/", "bench/", ".ci/")
PRESET_PROGRAM = re.compile(r"build/\w+/bin/(emulated/)?([\w-]+)$")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
SUBSTITUTION = re.compile(r"\$\(([^()]*)\)")
OPTION = re.compile(r"--?[A-Za-z][\w-]*")


def is_script(word):
    return word.startswith(SCRIPTS) or bool(re.fullmatch(r"examples/\w+\.py", word))


def simple_commands(line):
    """The simple commands of a shell's line, each a list of words; what is only shell falls away."""
    for inner in SUBSTITUTION.findall(line):
        yield from simple_commands(inner)
    line = SUBSTITUTION.sub("SUBSTITUTED", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = []
    for word in [*lexer, ";"]:
        if set(word) <= set("();<>|&"):
            if not set(word) & set("<>"):
                if words:
                    yield words
                words = []
        elif words or not ASSIGNMENT.match(word):
            words.append(word)


class Commands:
    """What there is in the tree `root` and in what was built of it in `build`."""

    def __init__(self, root, build):
        self.root, self.build = Path(root), Path(build)
        self.presets = json.loads((self.root / "CMakePresets.json").read_text(encoding="utf-8"))
        cmake = [*self.root.glob("CMakeLists.txt"), *self.root.glob("*/**/CMakeLists.txt"), *self.root.glob("cmake/*")]
        self.cmake = "".join(path.read_text(encoding="utf-8") for path in cmake
                             if path.relative_to(self.root).parts[0] != "build")
        self.unbuilt = set()  # programs that documents name and that are not there to be asked
        self.made = set()  # programs that the document itself makes

    # --- what there is ---

    def program(self, word):
        """The name of the project's program that a word stands for, or None."""
        found = PRESET_PROGRAM.match(word)
        name = found.group(2) if found else word
        if "/" in name or not re.fullmatch(r"[\w-]+", name):
            return None
        if (self.build / "bin" / name).is_file() or self.has_source(name):
            return name
        return None

    def has_source(self, name):
        """Whether this tree would build a program of that name."""
        suite = re.fullmatch(r"tutti_(\w+)_tests", name)
        if suite and re.search(rf"tutti_add_suite\({suite.group(1)}\b", self.cmake):
            return True
        folders = ["examples"] + (["bench/*"] if re.search(r"_(perf|bench)$", name) else [])
        return any(True for folder in folders for _ in self.root.glob(f"{folder}/{name}.c*")) or \
            bool(re.search(rf"add_executable\({re.escape(name)}(?![\w-])", self.cmake))

    def is_command(self, word):
        word = ALIASES.get(word, word)
        return word in SYSTEM or self.is_ours(word)

    def is_ours(self, word):
        return word in ("cmake", "ctest") or is_script(word) or bool(PRESET_PROGRAM.match(word) or self.program(word))

    @lru_cache(maxsize=None)
    def options(self, name):
        """All options of a program, or None where it is not there to be asked."""
        example = [path for path in self.root.glob(f"examples/{name}.c*")]
        if example:  # these have no --help, but they are short
            return set(OPTION.findall("".join(path.read_text() for path in [*example, self.root / "examples/launch.h"])))
        program = self.build / "bin" / name
        if not program.is_file():
            self.unbuilt.add(name)
            return None
        done = subprocess.run([program, "--help"], capture_output=True, text=True, check=False, timeout=60)
        return {"-h", "--help"} | set(OPTION.findall(done.stdout + done.stderr))

    # --- what is wrong with a command ---

    def complaints(self, line):
        try:
            commands = list(simple_commands(line))
        except ValueError as error:
            return [f"not a command: {error}"]
        return [text for words in commands for text in self.of_words(words)]

    def of_words(self, words):
        name = ALIASES.get(words[0], words[0])
        if Path(name).name in self.made:
            return []
        if is_script(name):
            return self.of_script(name, words[1:])
        if name == "cmake":
            return self.of_cmake(words[1:])
        if name == "ctest":
            return self.of_ctest(words[1:])
        if self.program(name):
            return self.of_program(self.program(name), words[1:])
        if name in SYSTEM:
            self.made |= set(values_of(words, "-o"))
            return self.of_system(words[1:])
        return [f"{words[0]} is neither a program of the project nor in the list of the system's"]

    def of_system(self, words):
        for i, word in enumerate(words):
            if self.is_ours(word):
                return self.of_words(words[i:])
        return []

    def of_script(self, name, words):
        path = self.root / name
        if not path.is_file():
            return [f"{name} does not exist"] if not path.is_dir() or words else []
        if name == "tools/tutti-doctor":
            return self.of_program("tutti-doctor", words)
        text = path.read_text(encoding="utf-8")
        known = set(OPTION.findall(text)) | ({"-h", "--help"} if "argparse" in text else set())
        return [f"{name} has no option {option}" for option in options_in(words) if option not in known]

    def of_program(self, name, words):
        known = self.options(name)
        if known is None:
            return []
        texts = [f"{name} has no option {option}" for option in options_in(words) if option not in known]
        return texts + [text for word in words if word.startswith("--gtest_filter=") for text in self.of_filter(name, word)]

    def of_filter(self, name, option):
        done = subprocess.run([self.build / "bin" / name, option, "--gtest_list_tests"], capture_output=True, text=True,
                              check=False, timeout=60)
        return [] if re.search(r"(?m)^ +\S", done.stdout) else [f"{option} fits no test of {name}"]

    def of_cmake(self, words):
        texts = [f"no option of cmake that is known here: {option}" for option in options_in(words)
                 if option not in CMAKE_OPTIONS and not option.startswith("-D")]
        kind = "buildPresets" if "--build" in words else "configurePresets"
        texts += self.of_preset(words, kind)
        for target in values_of(words, "--target"):
            if not re.search(rf"\((?:TARGET )?{re.escape(target)}(?![\w-])", self.cmake) and not self.program(target):
                texts.append(f"there is no target {target}")
        for name in re.findall(r"(?m)^-D(TUTTI_\w+)", "\n".join(words)):
            if not re.search(rf"(option|set)\({name}\b", self.cmake):
                texts.append(f"{name} is no option of the build")
        return texts

    def of_preset(self, words, kind):
        names = {preset["name"] for preset in self.presets[kind] if not preset.get("hidden")}
        return [f"there is no preset {name} in {kind}" for name in values_of(words, "--preset")
                if name not in names and not name.startswith("<")]

    def of_ctest(self, words):
        asked = [word for option in ("-L", "-R") for value in values_of(words, option) for word in (option, value)]
        texts = self.of_preset(words, "testPresets")
        if asked and not re.search(r"Total Tests: [1-9]", self.listed(*asked)):
            if "_NOT_BUILT" in self.listed() or not (self.build / "CTestTestfile.cmake").is_file():
                self.unbuilt.add("some tests")
            else:
                texts.append(f"no test fits ctest {' '.join(asked)}")
        return texts

    @lru_cache(maxsize=None)
    def listed(self, *asked):
        return subprocess.run(["ctest", "--test-dir", self.build, "-N", *asked], capture_output=True, text=True,
                              check=False, timeout=60).stdout


def options_in(words):
    return [found.group() for word in words if (found := OPTION.match(word))]


def values_of(words, option):
    return [value for word, value in zip(words, words[1:]) if word == option]
