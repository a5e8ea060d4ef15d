"""One rank of a job of Azure ML: who it is and where it joined, as the launcher's variables alone say, and a sum over all."""
import numpy

import tutti


def main():
    told = tutti.launch()
    with tutti.init() as comm:
        ranks = numpy.array([comm.rank + 1], "int64")
        comm.all_reduce(ranks)
        with comm.split_by_host() as node:
            print(f"{told.launcher}: rank {comm.rank} of {comm.size}, {node.rank} of {node.size} on its node, sum {ranks[0]}")


if __name__ == "__main__":
    main()
