"""Every kernel comes to an end: the code of each ends with a return, and not with whatever lies behind it.

What nvcc can not make code of for a GPU it may take, without a word, for something that never happens: a call of a builtin of
g++, which std::equal of two arrays ends in, or a reference to a static constexpr member, as std::min takes one. A thread that
came there left its kernel, ran into other code, or met a trap. Such a place is not likely in a compiler's eyes, so it stands at the
end of a function. No kernel has a trap of its own.

usage: ends_test.py NVCC    compiles kernels/cuda/*.cu for one generation, as far as PTX, which takes minutes
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ["-std=c++20", "-O2", "-fmad=false", "--expt-relaxed-constexpr", "-arch=compute_90", "-ptx"]
INCLUDES = [f"-I{ROOT / folder}" for folder in ("include", "src", ".")]
FUNCTION = re.compile(r"^(?:\.visible |\.weak )*\.(?:entry|func)\s[^{;]*?(\w+)\s*\([^{;]*\{(.*?)^\}", re.S | re.M)
END = re.compile(r"(ret|exit|bra(\.uni)?)\b.*;$")

WRONG = """#include <algorithm>
#include <array>
struct Limit { static constexpr int kMost = 7; };
__global__ void falls(const std::array<long, 2>* of, int* to) { *to = of[0] == of[1] ? 7 : 8; }
constexpr int capped(int of) { return of < 3 ? 4 : std::min(of, Limit::kMost); }
__global__ void traps(int of, int* to) { *to = capped(of); }
"""
RIGHT = "__global__ void ends(int* to) { *to = 7; }\n"


def ptx(nvcc, source, folder):
    out = pathlib.Path(folder) / (source.stem + ".ptx")
    done = subprocess.run([nvcc, *FLAGS, *INCLUDES, str(source), "-o", str(out)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"ends_test: {source.name} does not compile: {done.stderr}")
    return out.read_text()


def last_words(text):
    """The last instruction of each function, or a trap in it."""
    found = {}
    for name, body in FUNCTION.findall(text):
        lines = [line.strip() for line in body.splitlines()]
        found[name] = "trap" if "trap;" in lines else ([line for line in lines if line and line[0] not in "./{}"] or ["nothing"])[-1]
    return found


def falling(text):
    return {name: last for name, last in last_words(text).items() if not END.match(last)}


def check_itself(nvcc, folder):
    for name, text, count in (("wrong", WRONG, 2), ("right", RIGHT, 0)):
        source = pathlib.Path(folder) / f"{name}.cu"
        source.write_text(text)
        if len(falling(ptx(nvcc, source, folder))) != count:
            sys.exit(f"ends_test: it does not tell {name} code any more: this nvcc may make code of what others can not")


def main():
    nvcc = sys.argv[1]
    sources = sorted((ROOT / "kernels/cuda").glob("*.cu"), key=lambda source: -source.stat().st_size)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        check_itself(nvcc, folder)
        for source, text in zip(sources, pool.map(lambda source: ptx(nvcc, source, folder), sources)):
            print(f"{source.name}: {len(last_words(text))} functions")
            for name, last in falling(text).items():
                wrong += 1
                print(f"{source.name}: {name} has no end: its last instruction is {last}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
