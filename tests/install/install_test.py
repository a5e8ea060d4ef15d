"""Uses an installed tutti as somebody who only has the installed tree. One case per call:

tree       installs, moves the tree to where no build file points, and looks whether all is there
exports    libtutti.so exports what its headers declare under a version, by two names each, and nothing else
header     tutti.h in C99 and C++11, with all warnings
profiler   a program whose own tuttiAllReduce counts, and calls the library's by its second name
cmake      builds examples/ with find_package(tutti) and runs the first on two ranks; runs an installed program
pkgconfig  builds examples/ with cc, c++ and pkg-config, and runs the first two on two ranks
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLE = "01_all_reduce"


def run(*command, **options):
    print("$", *command, flush=True)
    return subprocess.run([str(part) for part in command], check=True, **options)


def output_of(*command, **options):
    return run(*command, stdout=subprocess.PIPE, text=True, **options).stdout


def expect(condition, text):
    if not condition:
        sys.exit(f"failed: {text}")


def environment(setting):
    """Without what a developer may have set, so that only the installed tree can be found."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TUTTI_", "LD_LIBRARY", "PKG_"))}
    return {**kept, **setting}


def sanitizer_flags(setting):
    return [f"-fsanitize={setting.sanitize}"] if setting.sanitize else []


def run_on_two_ranks(program, lib):
    output = output_of(program, "--ranks", "2", env=environment({"LD_LIBRARY_PATH": str(lib)}), stdin=subprocess.DEVNULL)
    print(output, flush=True)
    for rank in range(2):
        expect(f"rank {rank} of 2: 1 21 41 61" in output, f"{program}: rank {rank} has no right sum")


def check_tree(setting):
    shutil.rmtree(setting.work, ignore_errors=True)
    setting.prefix.parent.mkdir(parents=True)
    staging = setting.work / "staging"
    run("cmake", "--install", setting.build, "--prefix", staging, stdout=subprocess.DEVNULL)
    staging.rename(setting.prefix)
    version = output_of("pkg-config", "--modversion", "tutti", env=environment(setting.search)).strip()
    wanted = [f"{setting.libdir}/libtutti.so", f"{setting.libdir}/{soname(version)}", f"{setting.libdir}/libtutti.so.{version}",
              f"{setting.libdir}/cmake/tutti/tuttiConfig.cmake", f"{setting.libdir}/cmake/tutti/tuttiConfigVersion.cmake"]
    headers = [path.relative_to(setting.source) for path in (setting.source / "include").rglob("*.h*")]
    programs = [f"bin/{path.name}" for path in (setting.build / "bin").glob("*_perf")]
    expect(programs, "no program was built")
    for name in [*wanted, *headers, *programs, "bin/tutti-doctor"]:
        expect((setting.prefix / name).exists(), f"{name} is not installed")
    for path in setting.prefix.rglob("*"):
        text = path.read_bytes() if path.suffix in (".cmake", ".pc") else b""
        expect(bytes(setting.source) not in text, f"{path} knows where the sources were")


def soname(version):
    return "libtutti.so." + ".".join(version.split(".")[:2])


def check_exports(setting):
    version = output_of("pkg-config", "--modversion", "tutti", env=environment(setting.search)).strip()
    table = output_of("nm", "-D", "--defined-only", "--with-symbol-versions", setting.lib / soname(version))
    names = [line.split()[-1] for line in table.splitlines() if " T " in line]
    bare = sorted(name for name in names if not re.search(r"@@TUTTI_\d+\.\d+$", name))
    expect(not bare, f"{bare} have no version")
    exported = {name.split("@")[0] for name in names}
    strangers = sorted(name for name in exported if not re.match("p?tutti", name))
    expect(not strangers, f"libtutti.so exports {strangers}")
    headers = "".join(path.read_text(encoding="utf-8") for path in (setting.prefix / "include/tutti").glob("*.h"))
    declared = set(re.findall(r"^TUTTI_API [^;(]*\b(tutti\w+)\(", headers, re.MULTILINE))
    expect(declared, "no function was found in the headers")
    declared |= {"p" + name for name in declared}
    expect(exported == declared, f"declared only: {sorted(declared - exported)}; exported only: {sorted(exported - declared)}")


# An object of a function's own is made under a lock that a child of fork may inherit taken.
def check_statics(setting):
    version = output_of("pkg-config", "--modversion", "tutti", env=environment(setting.search)).strip()
    symbols = output_of("nm", "-C", setting.lib / soname(version)).splitlines()
    expect(any(" tutti::" in line for line in symbols), "the library has no names to look at")
    made = [line for line in symbols if "guard variable for tutti::" in line and "(" in line]
    expect(not made, "made when first reached, see process/process_object.h: " + "; ".join(made))


def check_header(setting):
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wundef", "-Werror", "-fsyntax-only"]
    use = setting.work / "use.c"
    use.write_text("#include <tutti/tutti.h>\nint main(void) { tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER; "
                   "return config.size == sizeof config ? 0 : 1; }\n", encoding="utf-8")
    for compiler, language, standards in ((setting.cc, "c", ("c99", "c17")), (setting.cxx, "c++", ("c++11", "c++20"))):
        extra = ["-Wstrict-prototypes", "-Wc++-compat"] if language == "c" else ["-Wold-style-cast", "-Wextra-semi"]
        for standard in standards:
            run(compiler, "-x", language, f"-std={standard}", *strict, *extra, "-I", setting.prefix / "include", use)


COUNTER = """#include <stdio.h>
#include <tutti/tutti.h>
extern __typeof__(tuttiAllReduce) ptuttiAllReduce;
tuttiResult_t tuttiAllReduce(const void* send, void* recv, size_t count, tuttiDataType_t type, tuttiRedOp_t op,
                             tuttiComm_t comm, tuttiStream_t stream) {
  printf("all-reduce of %zu elements\\n", count);
  fflush(stdout);
  return ptuttiAllReduce(send, recv, count, type, op, comm, stream);
}
"""


def check_profiler(setting):
    source, program = setting.work / "counter.c", setting.work / "counted"
    source.write_text(COUNTER, encoding="utf-8")
    flags = output_of("pkg-config", "--cflags", "--libs", "tutti", env=environment(setting.search)).split()
    run(setting.cc, *sanitizer_flags(setting), "-o", program, setting.source / f"examples/{EXAMPLE}.c", source, *flags)
    output = output_of(program, "--ranks", "2", env=environment({"LD_LIBRARY_PATH": str(setting.lib)}))
    expect(output.count("all-reduce of ") == 2, f"the calls of two ranks were not counted: {output}")
    expect("rank 1 of 2: 1 21 41 61" in output, f"the library's function was not called: {output}")


def check_cmake(setting):
    build = setting.work / "examples"
    flags = " ".join(sanitizer_flags(setting))
    run("cmake", "-G", setting.generator, "-S", setting.source / "examples", "-B", build,
        f"-DCMAKE_PREFIX_PATH={setting.prefix}",
        f"-DCMAKE_C_COMPILER={setting.cc}", f"-DCMAKE_CXX_COMPILER={setting.cxx}", f"-DCMAKE_C_FLAGS={flags}",
        f"-DCMAKE_CXX_FLAGS={flags}", "-DCMAKE_BUILD_TYPE=Release", env=environment({}))
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    expect(f"tutti_DIR:PATH={setting.prefix}" in cache, "find_package did not find the installed tree")
    run("cmake", "--build", build, env=environment({}))
    programs = [path for path in build.rglob(EXAMPLE) if path.is_file()]
    expect(len(programs) == 1, f"{EXAMPLE} was built {len(programs)} times in {build}")
    run_on_two_ranks(programs[0], setting.lib)
    run(setting.prefix / "bin/all_reduce_perf", "--ranks", "2", "-b", "8", "-e", "8", "-n", "1", "-w", "0",
        env=environment({}), stdin=subprocess.DEVNULL)


def check_pkgconfig(setting):
    def flags_of(*packages):
        return output_of("pkg-config", "--cflags", "--libs", *packages, env=environment(setting.search)).split()

    flags = flags_of("tutti")
    expect(all(str(setting.prefix) in flag for flag in flags if flag[:2] in ("-I", "-L")), f"{flags} point elsewhere")
    built = setting.work / "from_pkgconfig"
    built.mkdir(exist_ok=True)
    examples = setting.source / "examples"
    for source in sorted(examples.glob("*.c")):
        shape = ["-shared", "-fPIC"] if "tuttiTransportEntry" in source.read_text(encoding="utf-8") else []
        run(setting.cc, *sanitizer_flags(setting), *shape, "-o", built / source.stem, source, *flags)
    for source in sorted(examples.glob("*.cc")):
        run(setting.cxx, "-std=c++20", *sanitizer_flags(setting), "-o", built / source.stem, source, *flags_of("tutti", "zlib"))
    run_on_two_ranks(built / EXAMPLE, setting.lib)
    run(built / "02_digits", "--ranks", "2", "--epochs", "1", "--data", examples / "data/digits.csv.gz",
        env=environment({"LD_LIBRARY_PATH": str(setting.lib)}), stdin=subprocess.DEVNULL)


CASES = {
    "tree": check_tree, "exports": check_exports, "statics": check_statics, "header": check_header, "profiler": check_profiler,
    "cmake": check_cmake, "pkgconfig": check_pkgconfig}


def main():
    parser = argparse.ArgumentParser()
    for name in ("build", "work", "source"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("cc", "cxx", "sanitize", "libdir", "generator"):  # CMake's default generator may need what is not here
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("case", choices=CASES)
    setting = parser.parse_args()
    setting.prefix = setting.work / "moved" / "tutti"
    setting.lib = setting.prefix / setting.libdir
    setting.search = {"PKG_CONFIG_PATH": str(setting.lib / "pkgconfig")}
    CASES[setting.case](setting)


if __name__ == "__main__":
    main()
