#include "launch/launcher.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/trimmed.h"
#include "job/ranks.h"
#include "launch/launcher_table.h"
#include "process/log.h"
#include "process/private_file.h"
#include "process/user_folder.h"

namespace tutti::control {
namespace {

using settings::Environment;
using settings::Name;
using Row = LauncherRow;

constexpr std::string_view kAuto = "auto", kNone = "none", kAutoOrNone = "auto-or-none";

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::kInvalidUsage, text); }

// The first of the names that is set; the first of all when none is.
Name chosen(const Environment& environment, const Row::Names& names) {
  const auto set = std::find_if(names.begin(), names.end(), [&](Name name) { return name && environment.find(name); });
  return set == names.end() ? names.front() : *set;
}

bool isSet(const Environment& environment, Name name) { return name && environment.find(name).has_value(); }

bool applies(const Environment& environment, const Row& row) { return !row.applies || row.applies(environment); }

bool isWhole(const Environment& environment, const Row& row) {
  return isSet(environment, row.rank) && isSet(environment, chosen(environment, row.size)) && applies(environment, row);
}

// "RANK=3"
std::string shown(const Environment& environment, Name name) {
  return fmt::format("{}={}", name.text(), environment.find(name).value_or(""));
}

// Half a set: what is there, and what is not.
struct Half {
  Name there, missing;
  bool borrowed = false;  // what is there is the row's second choice, and most likely meant for another
};

std::optional<Half> halfOf(const Environment& environment, const Row& row) {
  if (isSet(environment, row.pair[0]) && !isSet(environment, row.pair[1])) return Half{row.pair[0], row.pair[1]};
  const Name size = chosen(environment, row.size);
  const bool hasRank = isSet(environment, row.rank);
  if (hasRank == isSet(environment, size) || !applies(environment, row)) return std::nullopt;
  if (hasRank) return Half{row.rank, size};
  return Half{size, row.rank, size != row.size.front()};
}

std::string describe(const Environment& environment, const Half& half) {
  const bool mayBeAlone = environment.text("TUTTI_LAUNCHER") == kAutoOrNone;
  return fmt::format("{} is set but {} is not: set both, or neither{}", shown(environment, half.there),
                     half.missing.text(), mayBeAlone ? "; TUTTI_LAUNCHER=none starts this process alone" : "");
}

int readLocal(const Environment& environment, const Row::Names& names, int low) {
  const Name name = chosen(environment, names);
  return name ? static_cast<int>(environment.number(name, low, low + kMaxRanks - 1).value_or(-1)) : -1;
}

// Rank and size from the row's columns, and nothing else.
void readWho(const Environment& environment, const Row& row, LaunchInfo& launch) {
  if (row.read) return row.read(environment, launch);
  const Name size = chosen(environment, row.size);
  launch.size = static_cast<int>(environment.number(size, 1, kMaxRanks).value_or(1));
  launch.rank = static_cast<int>(environment.number(row.rank, 0, kMaxRanks - 1).value_or(0));
  launch.source = fmt::format("{}/{}", row.rank.text(), size.text());
  if (launch.rank >= launch.size)
    refuse(fmt::format("{} but {}: ranks go from 0 to {}", shown(environment, row.rank), shown(environment, size),
                       launch.size - 1));
}

void readHost(const Environment& environment, const Row& row, LaunchInfo& launch) {
  if (!row.read) {
    launch.localRank = readLocal(environment, row.localRank, 0);
    launch.localSize = readLocal(environment, row.localSize, 1);
  }
  if (row.more) row.more(environment, launch);
  if (row.hosts && environment.number(row.hosts, 1, kMaxRanks) == 1) launch.localSize = launch.size;
  const Name rankName = chosen(environment, row.localRank), sizeName = chosen(environment, row.localSize);
  if (launch.localSize > launch.size)
    refuse(fmt::format("{} but {} ranks in all: there cannot be more on one host", shown(environment, sizeName),
                       launch.size));
  if (launch.localRank >= 0 && launch.localSize >= 0 && launch.localRank >= launch.localSize)
    refuse(fmt::format("{} but {} of {} ranks are on its host: local ranks go from 0 to {}",
                       shown(environment, rankName), launch.localSize, launch.size, launch.localSize - 1));
  if (std::string_view(row.name) == "tutti" && (launch.localRank < 0) != (launch.localSize < 0))
    refuse("one of TUTTI_LOCAL_RANK and TUTTI_LOCAL_SIZE is set alone: set both, or neither");
  launch.oneHost = launch.size == 1 || launch.localSize == launch.size;
}

std::string lookedFor() {
  std::string text;
  for (const Row& row : launcherRows()) {
    if (row.name == std::string_view("plain")) continue;  // the names of torchrun's row
    text += fmt::format("{}{}", text.empty() ? "" : "; ", row.rank.text());
    if (!row.read) text += fmt::format(" with {}", row.size.front().text());
    if (row.pair[1]) text += fmt::format(" and {}", row.pair[1].text());
  }
  return text;
}

const Row& forcedRow(const Environment& environment, const std::string& name) {
  std::string known = fmt::format("{}, {}, {}", kAuto, kNone, kAutoOrNone);
  for (const Row& row : launcherRows()) {
    if (name != row.name) {
      known += fmt::format(", {}", row.name);
      continue;
    }
    if (isWhole(environment, row)) return row;
    const auto half = halfOf(environment, row);
    refuse(fmt::format("TUTTI_LAUNCHER={}, but it has not said who this process is: {}", name,
                       half ? describe(environment, *half)
                            : fmt::format("looked for {} and {}", row.rank.text(), row.size.front().text())));
  }
  throw Error(ErrorCode::kInvalidArgument, fmt::format("TUTTI_LAUNCHER={}: choose one of {}", name, known));
}

bool belongsToAWholeSet(const Environment& environment, Name name) {
  const auto rows = launcherRows();
  return std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
    return isWhole(environment, row) && (row.rank == name || chosen(environment, row.size) == name);
  });
}

// Half a set above the row that counts is a mistake, unless what is there belongs to a set that is whole.
void refuseHalves(const Environment& environment, const Row* winner) {
  std::optional<Half> found;
  for (const Row& row : launcherRows()) {
    if (&row == winner) break;
    const auto half = halfOf(environment, row);
    if (!half || (winner && !row.exclusive) || belongsToAWholeSet(environment, half->there)) continue;
    if (!found || (found->borrowed && !half->borrowed)) found = half;
  }
  if (found) refuse(describe(environment, *found));
}

// Two launchers of one level do not run inside one another: they must agree.
void refuseContradictions(const Environment& environment, const Row& winner) {
  LaunchInfo mine;
  readWho(environment, winner, mine);
  for (const Row& row : launcherRows()) {
    if (&row == &winner || row.level != winner.level || !isWhole(environment, row)) continue;
    LaunchInfo theirs;
    readWho(environment, row, theirs);
    if (mine.rank != theirs.rank || mine.size != theirs.size)
      refuse(
          fmt::format("{} says rank {} of {} ({}), and {} says rank {} of {} ({}): unset what is left over, or say "
                      "which one counts with TUTTI_LAUNCHER={} or TUTTI_LAUNCHER={}",
                      winner.name, mine.rank, mine.size, mine.source, row.name, theirs.rank, theirs.size, theirs.source,
                      winner.name, row.name));
  }
}

const Row* findRow(const Environment& environment) {
  const Row* yielding = nullptr;
  for (const Row& row : launcherRows()) {
    if (!isWhole(environment, row)) continue;
    LaunchInfo who;
    if (row.yields) readWho(environment, row, who);
    if (!row.yields || who.size > 1) return &row;
    if (!yielding) yielding = &row;
  }
  return yielding;
}

// Null: nobody's variables count.
const Row* chooseRow(const Environment& environment) {
  const std::string name = environment.text("TUTTI_LAUNCHER");
  if (name == kNone) return nullptr;
  if (name != kAuto && name != kAutoOrNone) return &forcedRow(environment, name);
  const Row* row = findRow(environment);
  refuseHalves(environment, row);
  if (row == nullptr && name == kAutoOrNone) return nullptr;
  if (row == nullptr)
    refuse(
        fmt::format("no launcher has said who this process is. Looked for: {}. Start it with mpirun, torchrun or "
                    "srun, or set TUTTI_RANK, TUTTI_SIZE and TUTTI_ROOT",
                    lookedFor()));
  refuseContradictions(environment, *row);
  return row;
}

bool isLoopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

// host:port, [v6]:port
void parseRoot(const std::string& text, LaunchInfo& launch) {
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
  if (isLoopback(host)) launch.oneHost = true;
}

// Whoever knows it can join: it is not shown.
UniqueId idFromEnvironment(const std::string& text) try {
  return decode(fromHex(trimmed(text)));
} catch (const Error& error) {
  throw Error(error.code(), fmt::format("TUTTI_ID: {}", error.what()));
}

// What the user says about the place; true when it is anything.
bool readOwnPlace(const Environment& environment, LaunchInfo& launch) {
  const auto id = environment.find("TUTTI_ID"), file = environment.find("TUTTI_ID_FILE"),
             root = environment.find("TUTTI_ROOT");
  if (int(id.has_value()) + int(file.has_value()) + int(root.has_value()) > 1)
    refuse("more than one of TUTTI_ID, TUTTI_ID_FILE and TUTTI_ROOT is set: each says where to meet; keep one");
  if (id) {
    launch.id = idFromEnvironment(*id);
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

void readPlace(const Environment& environment, const Row& row, LaunchInfo& launch) {
  if (readOwnPlace(environment, launch)) return;
  LaunchInfo told = launch;
  const bool place = (row.place && row.place(environment, told)) || placeOfMaster(environment, told);
  if (!place && !launch.oneHost)
    refuse(
        fmt::format("{} says who this is (rank {} of {}), but nothing says where the ranks of several hosts meet: set "
                    "TUTTI_ROOT=host:port (rank 0's host, and a free port there), or MASTER_ADDR and MASTER_PORT, or "
                    "TUTTI_ID_FILE on a shared file system",
                    row.name, launch.rank, launch.size));
  if (launch.oneHost) told.source = launch.source, told.pmi = -1;
  launch = told;
}

std::string secretFromFile(const std::string& path) try {
  std::string content = readPrivateFile(path, kMostFileBytes);
  if (content.empty()) refuse("there is nothing in it but white space, if anything");
  return content;
} catch (const Error& error) {
  refuse(fmt::format("TUTTI_SECRET_FILE={}: {}", path, error.what()));
}

// As of a file's content, of which an editor or `echo` makes the last line whole, the space around it does not count.
std::string secretFromVariable(const std::string& value) {
  const std::string_view text = trimmed(value);
  if (text.empty()) refuse("TUTTI_SECRET is nothing but white space");
  return std::string(text);
}

void readRow(const Environment& environment, const Row& row, LaunchInfo& launch) {
  readWho(environment, row, launch);
  launch.jobKey = environment.find("TUTTI_JOB").value_or("");
  for (const Name key : row.jobKeys)
    if (key) launch.jobKey += environment.find(key).value_or("") + "/";
  readHost(environment, row, launch);
  readPlace(environment, row, launch);
  launch.secret = readSecret(environment);
  launch.folders = userFolders();
}

}  // namespace

std::optional<std::string> readSecret(const Environment& environment) {
  const auto text = environment.find("TUTTI_SECRET"), file = environment.find("TUTTI_SECRET_FILE");
  if (text && file) refuse("both TUTTI_SECRET and TUTTI_SECRET_FILE are set: keep one");
  if (file) return secretFromFile(*file);
  return text ? std::optional(secretFromVariable(*text)) : std::nullopt;
}

LaunchInfo readLaunch(const Environment& environment) {
  const Row* row = chooseRow(environment);
  LaunchInfo launch;
  if (row == nullptr) {
    launch.launcher = kNone;
    launch.oneHost = true;
    return launch;
  }
  launch.launcher = row->name;
  readRow(environment, *row, launch);
  log::info("rank {} of {}, as {} says ({})", launch.rank, launch.size, launch.launcher, launch.source);
  return launch;
}

}  // namespace tutti::control
