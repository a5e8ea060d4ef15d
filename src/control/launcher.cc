// Which variables say who this process is. The first complete row wins; half a row is an error.
//
//   row       rank, size                                local rank, size                       where to meet
//   --------  ----------------------------------------  -------------------------------------
//   ---------------------------- TUTTI     TUTTI_RANK TUTTI_SIZE                     TUTTI_LOCAL_RANK TUTTI_LOCAL_SIZE
//   TUTTI_ID | TUTTI_ID_FILE |
//                                                                                              TUTTI_ROOT=host:port
//   torchrun  RANK WORLD_SIZE (and LOCAL_RANK)          LOCAL_RANK LOCAL_WORLD_SIZE            MASTER_ADDR MASTER_PORT
//   Open MPI  OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK / _SIZE     one host: its Unix
//   socket PMI       PMI_RANK PMI_SIZE                         MPI_LOCALRANKID MPI_LOCALNRANKS        one host: its
//   Unix socket Slurm     SLURM_PROCID SLURM_NTASKS (in a step)     SLURM_LOCALID                          one host:
//   its Unix socket
//
// TUTTI_ID, TUTTI_ID_FILE and TUTTI_ROOT serve every row: they say where to meet, whoever says who one is. RANK and
// WORLD_SIZE count only together with LOCAL_RANK, since some schedulers number pods with them. Slurm sets its variables
// in the shell of a batch job too, where nobody but one process runs: they count only inside a step (SLURM_STEP_ID).
// torchrun's own store sits at MASTER_PORT, so the root listens 1789 above it (wrapping round within 1024-65535).
#include "control/launcher.h"

#include <vector>

#include "base/error.h"
#include "base/settings.h"

namespace tutti::control {
namespace {

constexpr int kMaxSize = 1 << 24;
constexpr int kPortStep = 1789, kFirstPort = 1024, kPorts = 65536 - kFirstPort;

struct Row {
  const char* rank;
  const char* size;
  const char* localRank;
  const char* localSize;
  const char* needs;                 // must be set for the row to count; null: nothing more
  std::vector<const char*> jobKeys;  // what tells one job on this host from another
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"TUTTI_RANK", "TUTTI_SIZE", "TUTTI_LOCAL_RANK", "TUTTI_LOCAL_SIZE", nullptr, {}},
      {"RANK",
       "WORLD_SIZE",
       "LOCAL_RANK",
       "LOCAL_WORLD_SIZE",
       "LOCAL_RANK",
       {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
      {"OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE",
       nullptr,
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"}},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, {"PMI_JOBID", "PMI_PORT", "HYDRA_JOBID"}},
      {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, "SLURM_STEP_ID", {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
  };
  return all;
}

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::kInvalidUsage, text); }

bool isTutti(const Row& row) { return &row == &rows().front(); }
bool isTorchrun(const Row& row) { return &row == &rows()[1]; }

// The row that is set. Half a row is an error, but for RANK, a name that others use for other things too.
const Row* findRow() {
  for (const Row& row : rows()) {
    const bool rank = settings::find(row.rank).has_value(), size = settings::find(row.size).has_value();
    const bool counts = row.needs == nullptr || settings::find(row.needs).has_value();
    if (rank && size && counts) return &row;
    if (rank != size && !isTorchrun(row) && counts)
      refuse(fmt::format("{} is set but {} is not: set both, or neither", rank ? row.rank : row.size,
                         rank ? row.size : row.rank));
  }
  return nullptr;
}

std::string lookedFor() {
  std::string text;
  for (const Row& row : rows())
    text += fmt::format("{}{} with {}{}", text.empty() ? "" : "; ", row.rank, row.size,
                        row.needs ? fmt::format(" and {}", row.needs) : "");
  return text;
}

void readWho(const Row& row, Launch& launch) {
  launch.size = static_cast<int>(settings::number(row.size, 1, 1, kMaxSize));
  launch.rank = static_cast<int>(settings::number(row.rank, 0, 0, kMaxSize));
  if (launch.rank >= launch.size)
    refuse(fmt::format("{}={} but {}={}: ranks go from 0 to size - 1", row.rank, launch.rank, row.size, launch.size));
  launch.localRank = static_cast<int>(settings::number(row.localRank, -1, 0, kMaxSize));
  if (row.localSize) launch.localSize = static_cast<int>(settings::number(row.localSize, -1, 1, kMaxSize));
  // A step of one node has all its tasks there.
  if (!row.localSize && settings::number("SLURM_STEP_NUM_NODES", 0, 0, kMaxSize) == 1) launch.localSize = launch.size;
  if (launch.localRank >= 0 && launch.localSize >= 0 && launch.localRank >= launch.localSize)
    refuse(fmt::format("{}={} but {}={}: local ranks go from 0 to size - 1", row.localRank, launch.localRank,
                       row.localSize, launch.localSize));
  for (const char* key : row.jobKeys) launch.jobKey += settings::text(key, "") + "/";
}

// host:port, [v6]:port
void parseRoot(const std::string& text, Launch& launch) {
  const size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (colon == std::string::npos || host.empty() || (host.find(':') != std::string::npos && text.front() != '['))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("TUTTI_ROOT={}: expected host:port, or [address]:port for IPv6", text));
  const std::string digits = text.substr(colon + 1);
  const bool number =
      !digits.empty() && digits.size() <= 5 && digits.find_first_not_of("0123456789") == std::string::npos;
  const int port = number ? std::stoi(digits) : 0;
  if (port < 1 || port > 65535)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("TUTTI_ROOT={}: the port must be from 1 to 65535", text));
  launch.rootHost = host;
  launch.rootPort = static_cast<uint16_t>(port);
}

// What TUTTI_* says about the place; true when it says anything.
bool readOwnPlace(Launch& launch) {
  const auto id = settings::find("TUTTI_ID"), file = settings::find("TUTTI_ID_FILE"),
             root = settings::find("TUTTI_ROOT");
  if (int(id.has_value()) + int(file.has_value()) + int(root.has_value()) > 1)
    refuse("more than one of TUTTI_ID, TUTTI_ID_FILE and TUTTI_ROOT is set: each says where to meet; keep one");
  if (id) {
    launch.id = fromHex(*id);
    launch.source += "/TUTTI_ID";
  } else if (file) {
    launch.idFile = *file;
    launch.source += "/TUTTI_ID_FILE";
  } else if (root) {
    parseRoot(*root, launch);
    launch.source += "/TUTTI_ROOT";
  }
  return id || file || root;
}

void readMaster(Launch& launch) {
  const auto host = settings::find("MASTER_ADDR");
  if (!host || !settings::find("MASTER_PORT"))
    refuse(
        "RANK, WORLD_SIZE and LOCAL_RANK are set, but MASTER_ADDR and MASTER_PORT are not both: they say where to "
        "meet");
  const auto port = static_cast<int>(settings::number("MASTER_PORT", 0, 1, 65535));
  launch.rootHost = *host;
  launch.rootPort = static_cast<uint16_t>(kFirstPort + (port - kFirstPort + kPortStep + kPorts) % kPorts);
  launch.source += "/MASTER_ADDR/MASTER_PORT";
}

// No address is told: all ranks on one host meet at a Unix socket that is named after the job.
void readOneHost(const Row& row, Launch& launch) {
  const bool oneHost = launch.size == 1 || launch.localSize == launch.size;
  if (!oneHost)
    refuse(
        fmt::format("{}={} says who this is, but nothing says where the {} ranks meet: set TUTTI_ROOT=host:port (a "
                    "free port of rank 0's host), or TUTTI_ID_FILE on a shared file system",
                    row.rank, launch.rank, launch.size));
  launch.rootHost = "localhost";
}

void readSecret(Launch& launch) {
  const auto text = settings::find("TUTTI_SECRET"), file = settings::find("TUTTI_SECRET_FILE");
  if (text && file) refuse("both TUTTI_SECRET and TUTTI_SECRET_FILE are set: keep one");
  if (text) launch.secret = secretFromText(*text);
  if (file) launch.secret = secretFromText(readSmallFile(*file));
}

}  // namespace

Launch readLaunch() {
  const Row* row = findRow();
  if (row == nullptr)
    refuse(fmt::format(
        "no launcher has said who this process is. Looked for: {}. Start it with mpirun, torchrun or srun, or "
        "set TUTTI_RANK, TUTTI_SIZE and TUTTI_ROOT",
        lookedFor()));
  Launch launch;
  launch.source = fmt::format("{}/{}", row->rank, row->size);
  readWho(*row, launch);
  if (!readOwnPlace(launch)) {
    if (isTorchrun(*row))
      readMaster(launch);
    else if (isTutti(*row) && launch.size > 1)
      refuse(
          "TUTTI_RANK and TUTTI_SIZE are set, but none of TUTTI_ROOT, TUTTI_ID and TUTTI_ID_FILE: one must say where "
          "the "
          "ranks meet");
    else
      readOneHost(*row, launch);
  }
  readSecret(launch);
  return launch;
}

}  // namespace tutti::control
