"""No hot kernel spills registers to memory: what ptxas says of each kernel of the build, and of those that spill.

usage: spills_test.py DIRECTORY    where what ptxas -v said of each kernels/cuda/*.cu lies
"""
import pathlib
import re
import sys

# The kernel for everything that is not hot may spill: it holds all types and operators.
HOT = re.compile(r"tuttiCollective")


def kernels(text):
    """Name, bytes of spill stores, bytes of spill loads and registers of each kernel of the report."""
    found = []
    for part in re.split(r"Compiling entry function '", text)[1:]:
        name = part.split("'")[0]
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part)
        registers = re.search(r"Used (\d+) registers", part)
        if not spills or not registers:
            raise SystemExit(f"the report says nothing of the registers of {name}")
        found.append((name, int(spills[1]), int(spills[2]), int(registers[1])))
    return found


def main():
    folder = pathlib.Path(sys.argv[1])
    kernels_of = pathlib.Path(__file__).parents[2] / "kernels/cuda"
    protocols = [source for source in kernels_of.glob("*.cu") if "hotKernels<" in source.read_text()]
    reports = [folder / f"{source.name}.o.ptxas" for source in sorted(protocols)]
    missing = [report.name for report in reports if not report.exists()]
    if missing:
        print(f"skipped: this build has no kernels for a GPU (no {', '.join(missing)}); build it with nvcc, target tutti_device")
        return 77
    found = [kernel for report in reports for kernel in kernels(report.read_text())]
    for name, stores, loads, registers in found:
        print(f"{registers:4} registers, {stores} bytes stored and {loads} loaded for want of them: {name}")
    hot = [kernel for kernel in found if HOT.search(kernel[0])]
    if not hot:
        print(f"the reports in {folder} name no kernel tuttiCollective")
        return 1
    spilling = [name for name, stores, loads, _ in hot if stores or loads]
    print(f"{len(hot)} hot kernels, {len(spilling)} of them spill")
    return 1 if spilling else 0


if __name__ == "__main__":
    sys.exit(main())
