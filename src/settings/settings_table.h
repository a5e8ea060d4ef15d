// Every TUTTI_* variable there is, in one table: nothing else can be read (settings::Name refuses to compile), the
// reading functions take defaults and ranges from here, and docs/settings.md and `tutti-doctor env` are made of it.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::settings {

enum class Type : uint8_t { kText, kPath, kNumber, kMilliseconds, kSwitch, kSecret };
enum class For : uint8_t { kJoining, kNetwork, kRunning, kDiagnosis, kPrograms, kTests };

struct Setting {
  const char* name;
  For section;
  Type type;
  const char* fallback;  // as it would be written in the environment; empty: none
  int64_t low, high;     // of a number, both included
  const char* values;    // what a text may be, for people; empty: the type says it
  const char* help;
};

inline constexpr int64_t kLongestMs = 1'000'000'000;

inline constexpr auto kTable = std::to_array<Setting>({
    // Who this process is, and where the ranks meet
    {"TUTTI_LAUNCHER", For::kJoining, Type::kText, "auto", 0, 0,
     "auto, none, auto-or-none, tutti, torchrun, horovod, openmpi, mpich, mvapich, pals, flux, jsm, slurm, pmix, "
     "tensorflow, plain, kubernetes",
     "Whose variables say who this process is. auto: the innermost launcher that set a whole set. none: nobody's, the "
     "process is the only rank. auto-or-none: that where there is no launcher; so the measuring programs ask."},
    {"TUTTI_RANK", For::kJoining, Type::kNumber, "", 0, (1 << 14) - 1, "", "The rank of this process."},
    {"TUTTI_SIZE", For::kJoining, Type::kNumber, "", 1, 1 << 14, "", "How many ranks there are."},
    {"TUTTI_LOCAL_RANK", For::kJoining, Type::kNumber, "", 0, (1 << 14) - 1, "", "The rank among those of this host."},
    {"TUTTI_LOCAL_SIZE", For::kJoining, Type::kNumber, "", 1, 1 << 14, "", "How many ranks are on this host."},
    {"TUTTI_JOB", For::kJoining, Type::kText, "", 0, 0, "any text",
     "Tells jobs of one user on one host apart that meet at the same time, where the launcher gives them no number."},
    {"TUTTI_ROOT", For::kJoining, Type::kText, "", 0, 0, "host:port or [address]:port",
     "Where the ranks meet: rank 0's host and a free port there."},
    {"TUTTI_ID", For::kJoining, Type::kSecret, "", 0, 0, "256 hex digits",
     "A unique id, instead of TUTTI_ROOT. It holds the secret of the job."},
    {"TUTTI_ID_FILE", For::kJoining, Type::kPath, "", 0, 0, "",
     "A file that holds the unique id in hex, or soon will; instead of TUTTI_ROOT. The library only reads it: "
     "docs/launchers.md says who writes it. It must be yours or root's, and nobody else's to read or write."},
    {"TUTTI_SECRET", For::kJoining, Type::kSecret, "", 0, 0, "any text",
     "What every rank must know to join where the meeting place is an address, and beside a unique id if it is set. "
     "The same on every rank; white space around it does not count, here and in TUTTI_SECRET_FILE."},
    {"TUTTI_SECRET_FILE", For::kJoining, Type::kPath, "", 0, 0, "",
     "A file with the secret; instead of TUTTI_SECRET. It must be yours or root's, and nobody else's to read or "
     "write."},
    {"TUTTI_JOIN_TIMEOUT_MS", For::kJoining, Type::kMilliseconds, "60000", 1, kLongestMs, "",
     "How long to wait for all ranks, and how long a unique id that is made is good for. The error names those that "
     "are missing."},

    // Sockets
    {"TUTTI_SOCKET_IFNAME", For::kNetwork, Type::kText, "", 0, 0, "eth,ib0 or =eth0,ib0 or ^docker,lo",
     "Network interfaces to use: beginnings of names; with = in front of the list whole names, with ^ all but these, "
     "with ^= both, as with NCCL. A = in front of one later name is for that name. Default: all."},
    {"TUTTI_SOCKET_FAMILY", For::kNetwork, Type::kText, "0", 0, 0, "4, 6, or 0 for both", "IPv4 or IPv6 only."},
    {"TUTTI_TCP_CONGESTION", For::kNetwork, Type::kText, "", 0, 0, "cubic, reno, bbr, dctcp, whatever the system has",
     "The congestion control of TCP links. Default: the system's, but where that is BBR, cubic (or reno): BBR holds "
     "back messages of ranks that wait for each other."},
    {"TUTTI_PORT_RANGE", For::kNetwork, Type::kText, "", 0, 0, "first-last, or one port",
     "TCP ports to listen at, from 1 to 65535. Each rank of a host needs one for each communicator; rank 0, or the "
     "process that made the unique id, one more while the ranks join, which with TUTTI_ROOT is the one named there. "
     "Default: any."},
    {"TUTTI_UNIX_SOCKETS", For::kNetwork, Type::kSwitch, "1", 0, 1, "",
     "Whether ranks of one host may talk over Unix sockets. 0: TCP between them too, and no shared memory, which is "
     "handed over such a socket."},
    {"TUTTI_HOST_ID", For::kNetwork, Type::kText, "", 0, 0, "",
     "A name for what counts as one host. Default: the machine and its network namespace."},
    {"TUTTI_ENCRYPT", For::kNetwork, Type::kSwitch, "0", 0, 1, "",
     "Whether to encrypt what crosses a network. The same on every rank. 0 leaves it off also where the program asks "
     "for it, with a warning."},

    // RDMA
    {"TUTTI_IB_HCA", For::kNetwork, Type::kText, "", 0, 0, "mlx5_0:1,mlx5_1 or =mlx5_1 or ^mlx5_2",
     "RDMA devices to use, and ports of them: beginnings of names; with = in front of the list whole names, with ^ all "
     "but these, with ^= both, as with NCCL. Default: all whose port is active."},
    {"TUTTI_IB_GID_INDEX", For::kNetwork, Type::kNumber, "-1", -1, 255, "-1: chosen",
     "The number of a port's address in its table. Chosen: of RoCE one of version 2, IPv4 before others; of InfiniBand "
     "the first."},
    {"TUTTI_IB_QPS_PER_CONNECTION", For::kNetwork, Type::kNumber, "1", 1, 8, "",
     "Queue pairs of a link on each port, over which its messages are spread: where a switch chooses ways by queue "
     "pair."},
    {"TUTTI_IB_TC", For::kNetwork, Type::kNumber, "0", 0, 255, "", "The traffic class of RoCE, and of routed packets."},
    {"TUTTI_IB_SL", For::kNetwork, Type::kNumber, "0", 0, 15, "", "The service level of InfiniBand."},
    {"TUTTI_IB_TIMEOUT", For::kNetwork, Type::kNumber, "18", 1, 31, "",
     "A packet that is not answered is sent again after 4.096 us times 2 to the power of this; at 18 that is a "
     "second."},
    {"TUTTI_IB_RETRY_CNT", For::kNetwork, Type::kNumber, "6", 0, 7, "",
     "How often it is sent again before its way counts as broken."},
    {"TUTTI_IB_PCI_RELAXED_ORDERING", For::kNetwork, Type::kSwitch, "1", 0, 1, "",
     "Whether the PCI bus may order what an RDMA device writes as it likes, where the device knows how."},
    {"TUTTI_IB_MEMORY_MIB", For::kNetwork, Type::kNumber, "4096", 0, 1 << 24, "",
     "How much of the program's memory, in MiB, each RDMA device may have registered to send from: what tuttiMemAlloc "
     "gave out and tuttiCommRegister was told of. What was used longest ago makes room; what has none is copied into "
     "slots. 0: all is."},

    // How operations run
    {"TUTTI_CONF_FILE", For::kRunning, Type::kPath, "", 0, 0, "",
     "A file with lines NAME=VALUE, which count as variables that are set; those of the environment win. Read instead "
     "of ~/.tutti.conf; what neither has may be in /etc/tutti.conf. Files that others may write to are not read, and "
     "no file may hold a secret, or what says who a process is and where the ranks of one job meet."},
    {"TUTTI_TRANSPORT", For::kRunning, Type::kText, "", 0, 0, "a list such as shm,tcp or ^shm",
     "Transports to choose from. Default: all."},
    {"TUTTI_SINGLE_COPY", For::kRunning, Type::kNumber, "1", 0, 2, "0: never, 1: where it is faster, 2: always",
     "Whether ranks of one host read long messages where they lie in each other's memory (process_vm_readv), which "
     "saves a copy. What is faster is tried while calls repeat. Where the system does not permit it, or one end has 0 "
     "here, they go through shared slots. Memory of tuttiMemAlloc is mapped and read in place with 1 and 2 alike, but "
     "for long all-reduces of two ranks in place: 1 goes by slots where they are faster. "
     "Over TCP they are alike, too: long messages go from the caller's buffer to the socket and from there to the "
     "caller's buffer; and over RDMA, which sends from registered memory."},
    {"TUTTI_TRANSPORT_PLUGINS", For::kRunning, Type::kText, "", 0, 0, "paths of shared objects, with commas between",
     "Further transports (tutti/transport.h). What they are called and which there are is to be the same on every "
     "rank."},
    {"TUTTI_ALGO", For::kRunning, Type::kText, "", 0, 0,
     "ring, tree, oneshot, twoshot, halving, bruck, direct, hierarchical, doubling, twopass; several, as tree,ring; "
     "all but "
     "some, as ^tree; for each operation, as tree;all_reduce:ring,oneshot",
     "The algorithm of every collective that has it, or those to choose from, in any case of letters. What follows an "
     "operation's name is for that one, what stands alone for all that are not named (docs/tuning.md). An operation "
     "that has none of them chooses among all. The same on every rank. Default: the fastest by the cost model."},
    {"TUTTI_CHANNELS", For::kRunning, Type::kText, "0", 0, 0,
     "whole number, 0 to 64; 0: as many as pay; for each operation, as 2;all_reduce:8",
     "Into how many lanes a collective is split. The same on every rank."},
    {"TUTTI_PROFILE", For::kRunning, Type::kPath, "", 0, 0, "",
     "A file with the prices by which algorithms on host memory are compared, as tutti-tune writes it for a kind of "
     "machine. The same prices on every rank. Default: those that the library ships with."},
    {"TUTTI_REPRODUCIBLE", For::kRunning, Type::kSwitch, "0", 0, 1, "",
     "Whether a number of ranks always gets the same bits of the same floating-point values, whatever the sizes, "
     "algorithms, channels, hosts and GPUs: all are added in the order of the ranks. TUTTI_ALGO holds where its "
     "algorithm does so (oneshot, twoshot, twopass, direct). The same on every rank. 0 leaves it off also where the "
     "program "
     "asks for it, with a warning."},
    {"TUTTI_DEVICE", For::kRunning, Type::kText, "cpu", 0, 0, "cpu, cuda, cuda:N",
     "Where the buffers are: in host memory, on the calling thread's current GPU, or on that one. The devices that a "
     "program hands to tuttiCommInitAll are none of its configuration, and win. The measuring programs have --device, "
     "and refuse a wrong value here, but follow none."},
    {"TUTTI_ENGINE", For::kRunning, Type::kText, "auto", 0, 0, "auto, kernel, copy, stream",
     "What runs operations on GPUs: kernels that wait (kernel), streams that wait where data is only moved (copy), or "
     "always (stream). auto: kernels, but streams where ranks of several processes share a GPU."},
    {"TUTTI_PROTOCOL", For::kRunning, Type::kText, "", 0, 0,
     "simple, ll, ll128; several, as ll,simple; all but some, as ^ll128; for each operation, as simple;broadcast:ll",
     "How slots on GPUs say that they are full, or what to choose from for that, in the manner of TUTTI_ALGO. LL128 is "
     "forced where it stands alone; in a list it is chosen only where it is right. The same on every rank."},
    {"TUTTI_TOPO_FILE", For::kRunning, Type::kPath, "", 0, 0, "",
     "A file that describes this host and the links between its GPUs, in NCCL's XML or hwloc's, as clouds publish it "
     "and "
     "tutti-topo writes it; what is detected completes it. Read by the first rank of each host, on GPUs, for the order "
     "of ranks in rings. One that is of no use is warned of. Default: the host as it is detected."},
    {"TUTTI_GPU_BUFFER_MIB", For::kRunning, Type::kNumber, "128", 1, 1 << 16, "",
     "MiB that a rank may spend on the slots of its links on a GPU. The same on every rank."},
    {"TUTTI_GROUP_SIZE", For::kRunning, Type::kNumber, "0", 0, 1 << 20,
     "0: real hosts, or the cores of one that ranks share",
     "Treats so many ranks in a row as one host in hierarchical algorithms."},
    {"TUTTI_CONNECT_TIMEOUT_MS", For::kRunning, Type::kMilliseconds, "20000", 1, kLongestMs, "",
     "How long two ranks may take to connect."},
    {"TUTTI_OPERATION_TIMEOUT_MS", For::kRunning, Type::kMilliseconds, "1800000", 1, kLongestMs, "",
     "How long one operation may take."},
    {"TUTTI_HEARTBEAT_MS", For::kRunning, Type::kMilliseconds, "20000", 0, kLongestMs, "0: silence is no failure",
     "After so much silence a rank counts as gone. The same on every rank."},

    // What is told
    {"TUTTI_DEBUG", For::kDiagnosis, Type::kText, "warn", 0, 0, "trace, debug, info, version, warn, off",
     "How much is written to standard error, in any case of letters. info: also, once for each communicator, a table "
     "of its ranks, links and plans, by rank 0. version: as warn, and the version, once. trace: as debug. Where it is "
     "set, to warn too, the line about NCCL_* "
     "variables is told with info only."},
    {"TUTTI_DEBUG_FILE", For::kDiagnosis, Type::kPath, "", 0, 0, "",
     "Where that is written instead, at the end of what is there; %h stands for the host's name, %p for the number of "
     "the process, %% for %."},
    {"TUTTI_PREFLIGHT", For::kDiagnosis, Type::kSwitch, "0", 0, 1, "",
     "Whether rank 0 warns, when the first communicator of a process is made, of what hosts lack and where they "
     "differ: "
     "MTUs, ports, memory to lock, limits (docs/doctor.md). Where any rank has 1, all are looked at."},
    {"TUTTI_VERIFY", For::kDiagnosis, Type::kSwitch, "0", 0, 1, "",
     "Whether to prove every schedule of all ranks before its first use."},
    {"TUTTI_DUMP_DIR", For::kDiagnosis, Type::kPath, "", 0, 0, "",
     "The folder for JSON files with the last calls of a rank, written on an error, but for one while joining, and on "
     "SIGUSR2. Default: none."},
    {"TUTTI_TRACE", For::kDiagnosis, Type::kPath, "", 0, 0, "",
     "The file for a time line of the calls on host memory, at the end of what is there; Perfetto opens it "
     "(docs/tracing.md). "
     "%h stands for the host's name, %p for the number of the process, %% for %. Default: none."},

    // Read by the programs alone
    {"TUTTI_TESTS_MIN_BW", For::kPrograms, Type::kText, "", 0, 0, "GB/s",
     "A measuring program fails when its mean bus bandwidth is below nine tenths of this, which is nccl-tests' rule. "
     "Where it is not set, NCCL_TESTS_MIN_BW is read, which means the same."},
    {"TUTTI_PERF_PARENT", For::kPrograms, Type::kText, "", 0, 0, "",
     "Set by the measuring programs for the processes they start."},

    // Set by the tests and the commands in tools/
    {"TUTTI_LL_FLAG_BITS", For::kTests, Type::kNumber, "32", 6, 32, "",
     "Width of the flags of protocol LL: a test sees them wrap around. The same on every rank."},
    {"TUTTI_GPU_ARGUMENT_KIB", For::kTests, Type::kNumber, "1024", 1, 1 << 16, "",
     "KiB for the arguments of calls on GPUs that do not fit into a launch: a test fills them with few."},
    {"TUTTI_BIN_DIR", For::kTests, Type::kPath, "", 0, 0, "", "Where the tests find the programs."},
    {"TUTTI_CHECK_FIXED", For::kTests, Type::kText, "", 0, 0, "", "Set by tools/check for itself."},
});

// Names that begin like this belong to the tests, whatever comes after.
inline constexpr std::string_view kPrefix = "TUTTI_", kTestPrefix = "TUTTI_TEST_";

// The row's number; the table's size when there is none.
constexpr size_t rowNumber(std::string_view name) {
  size_t number = 0;
  while (number < kTable.size() && name != kTable[number].name) ++number;
  return number;
}
constexpr const Setting* findSetting(std::string_view name) {
  const size_t number = rowNumber(name);
  return number < kTable.size() ? &kTable[number] : nullptr;
}

// The table as a page of documentation.
std::string asMarkdown();

// "whole number, 0 to 64", for people.
std::string rangeOf(const Setting& setting);

}  // namespace tutti::settings
