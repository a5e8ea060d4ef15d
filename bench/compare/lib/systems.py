"""The systems that are compared, and how each is tuned. A system has several configurations where none is best everywhere: each
cell then takes the best one. docs/comparing.md says why each is there."""
from dataclasses import dataclass, field, replace

from cells import OPERATIONS

INTERFACE, HUB_INTERFACE = "eth0", "br0"  # of a host, and of the bridge between hosts (tools/lib/network.py)
NAMES = {"tutti": "tutti", "openmpi": "Open MPI", "mpich": "MPICH", "gloo": "Gloo", "ucc": "UCC"}
# What the caller's environment says of these is not passed on.
TUNED_BY = ("TUTTI_", "OMPI_", "MPIR_", "MPICH_", "UCX_", "UCC_", "GLOO_", "MALLOC_")

# Memory that was once given back to the system costs a page fault for each page when it is asked for again, and all peers
# ask for their scratch memory in every call.
HEAP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "8589934592", "MALLOC_TOP_PAD_": "268435456"}
OPENMPI = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl_base_warn_component_unused": "0",
           "OMPI_MCA_opal_warn_on_missing_libcuda": "0"}
VADER = {**OPENMPI, "OMPI_MCA_btl": "vader,self"}
SOCKETS = {**OPENMPI, "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo"}
EAGER = {**SOCKETS, "OMPI_MCA_btl_tcp_eager_limit": "262144", "OMPI_MCA_btl_tcp_max_send_size": "1048576"}
UCX_QUIET = {"UCX_WARN_UNUSED_ENV_VARS": "n", "UCX_LOG_LEVEL": "error"}
UCX_CMA = {**UCX_QUIET, "UCX_TLS": "posix,cma,self"}
UCX_POSIX = {**UCX_QUIET, "UCX_TLS": "posix,self"}
UCX_TCP = {**UCX_QUIET, "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}
RELEASE_GATHER = {f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM": "release_gather" for name in ("BCAST", "ALLREDUCE", "BARRIER")}

LARGE = 16 << 20  # where HEAP begins to pay
SUMMING = ("all_reduce", "reduce_scatter")  # and for what


@dataclass(frozen=True, eq=False)
class Configuration:
    system: str
    name: str
    transport: str
    variables: dict = field(default_factory=dict)
    mode: str = ""
    memory: str = "ordinary"
    # Which rank stays on a processor of its own: none ("never"), each while there are enough ("fitting"), or all ("always").
    pinned: str = "fitting"
    operations: tuple = OPERATIONS
    least: int = 0  # bytes
    most: int = 1 << 62
    real_time: bool = False  # with SCHED_RR, where that is allowed
    interface: str = "lo"  # of sockets, for the driver that has no setting for it

    def takes(self, cell):
        return cell.op in self.operations and self.least <= cell.bytes <= self.most

    def environment(self, inherited, ranks, cpus):
        """The variables of a job."""
        kept = {name: value for name, value in inherited.items() if not name.startswith(TUNED_BY)}
        crowded = ranks > cpus
        if self.system == "openmpi":
            kept["OMPI_MCA_mpi_yield_when_idle"] = "1" if crowded else "0"
        if self.system == "mpich" and crowded:
            kept["MPIR_CVAR_POLLS_BEFORE_YIELD"] = "1"
        return {**kept, **self.variables}

    def pins(self, ranks, cpus):
        return self.pinned == "always" or (self.pinned == "fitting" and ranks <= cpus)


def _tutti(transport):
    for memory in ("ordinary", "registered"):
        yield Configuration("tutti", "default" if memory == "ordinary" else memory, transport, {"TUTTI_TRANSPORT": transport},
                            mode="" if memory == "ordinary" else memory, memory=memory, pinned="always")


def _openmpi():
    yield Configuration("openmpi", "vader", "shm", VADER, pinned="always")
    yield Configuration("openmpi", "vader, heap kept", "shm", {**VADER, **HEAP}, pinned="always",
                        operations=SUMMING, least=LARGE)
    yield Configuration("openmpi", "vader, ring", "shm", {**VADER, **HEAP}, mode="ring", pinned="always",
                        operations=("reduce_scatter",), least=256 << 10)
    yield Configuration("openmpi", "coll/sm", "shm", {**VADER, "OMPI_MCA_coll_sm_priority": "100"}, pinned="always",
                        operations=("all_reduce", "broadcast"))
    yield Configuration("openmpi", "tcp", "tcp", SOCKETS, pinned="always")
    yield Configuration("openmpi", "tcp, eager", "tcp", EAGER, pinned="always", most=1 << 20)
    yield Configuration("openmpi", "tcp, heap kept", "tcp", {**SOCKETS, **HEAP}, pinned="always", operations=SUMMING, least=LARGE)


def _mpich():
    for transport, name, ucx in (("shm", "ucx", UCX_CMA), ("tcp", "ucx tcp", UCX_TCP)):
        through_ucx = {**ucx, "MPIR_CVAR_NOLOCAL": "1"}
        yield Configuration("mpich", name, transport, through_ucx)
        yield Configuration("mpich", f"{name}, heap kept", transport, {**through_ucx, **HEAP}, operations=SUMMING, least=LARGE)
    yield Configuration("mpich", "release_gather", "shm", {**UCX_CMA, **RELEASE_GATHER},
                        operations=("all_reduce", "broadcast"))


def _gloo():
    yield Configuration("gloo", "ring", "tcp", mode="ring", pinned="never", real_time=True)
    for mode in ("bcube", "halving"):
        yield Configuration("gloo", mode, "tcp", mode=mode, pinned="never", real_time=True, operations=("all_reduce",))


def _ucc():
    for name, transport, ucx in (("cma", "shm", UCX_CMA), ("posix", "shm", UCX_POSIX), ("tcp", "tcp", UCX_TCP)):
        yield Configuration("ucc", name, transport, ucx)
        if name != "posix":
            yield Configuration("ucc", f"{name}, heap kept", transport, {**ucx, **HEAP}, operations=("reduce_scatter",),
                                least=LARGE)


def _between_namespaces(one):
    """What goes over the loopback device goes over that of the rank's namespace. Open MPI's ranks hear of each other from their
    launcher, over the hub's."""
    variables = {name: INTERFACE if value == "lo" else value for name, value in one.variables.items()}
    if one.system == "openmpi":
        variables["PMIX_MCA_ptl_base_if_include"] = HUB_INTERFACE
    return replace(one, transport="namespaces", variables=variables, interface=INTERFACE)


def configurations(systems, transports, memories):
    """Of these systems, in the order in which they are measured: tutti first, which says what is slow."""
    every = [*_tutti("shm"), *_tutti("tcp"), *_openmpi(), *_mpich(), *_gloo(), *_ucc()]
    every += [_between_namespaces(one) for one in every if one.transport == "tcp"]
    return [one for one in every if one.system in systems and one.transport in transports and
            (one.system != "tutti" or one.memory in memories)]
