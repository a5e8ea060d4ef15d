#include "settings/settings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "device/protocol.h"
#include "launch/launcher_names.h"
#include "net/network.h"
#include "schedule/algorithm.h"
#include "settings/survey.h"
#include "support/other_user.h"
#include "support/sanitized.h"
#include "support/variables.h"
#include "team/config.h"

namespace tutti::settings {
namespace {

constexpr int kUnprivileged = 77;

std::string refusalOf(const Environment& environment, Name name) {
  try {
    environment.number(name);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    return e.what();
  }
  return "";
}

TEST(Settings, AreReadFromTheirRows) {
  const Environment nothing(Environment::Values{});
  EXPECT_EQ(nothing.number("TUTTI_GROUP_SIZE"), 0);
  EXPECT_EQ(nothing.text("TUTTI_DEBUG"), "warn");
  EXPECT_FALSE(nothing.find("TUTTI_DEBUG").has_value());
  EXPECT_TRUE(nothing.isOn("TUTTI_UNIX_SOCKETS"));
  EXPECT_EQ(nothing.milliseconds("TUTTI_JOIN_TIMEOUT_MS").count(), 60'000);
  const Environment some({{"TUTTI_GROUP_SIZE", "7"}, {"TUTTI_DEBUG", ""}, {"TUTTI_UNIX_SOCKETS", "0"}});
  EXPECT_EQ(some.number("TUTTI_GROUP_SIZE"), 7);
  EXPECT_EQ(some.text("TUTTI_DEBUG"), "warn") << "empty counts as not set";
  EXPECT_FALSE(some.isOn("TUTTI_UNIX_SOCKETS"));
}

TEST(Settings, OutOfRangeNamesVariableValueAndRange) {
  for (const char* value : {"1048577", "-1", "x", "1 ", " 1", "1.5", "0x1", "99999999999999999999"}) {
    const std::string text =
        refusalOf(Environment(Environment::Values{{"TUTTI_GROUP_SIZE", value}}), "TUTTI_GROUP_SIZE");
    EXPECT_NE(text.find(std::string("TUTTI_GROUP_SIZE=") + value), std::string::npos) << text;
    EXPECT_NE(text.find("from 0 to 1048576"), std::string::npos) << text;
  }
  EXPECT_EQ(refusalOf(Environment(Environment::Values{{"TUTTI_GROUP_SIZE", "1048576"}}), "TUTTI_GROUP_SIZE"), "");
}

TEST(Settings, DefaultsAreThoseOfAConfigMadeWithoutThem) {
  const comm::Config plain;
  const Environment nothing(Environment::Values{});
  EXPECT_EQ(nothing.milliseconds("TUTTI_JOIN_TIMEOUT_MS"), plain.joinTimeout);
  EXPECT_EQ(nothing.milliseconds("TUTTI_CONNECT_TIMEOUT_MS"), plain.connectTimeout);
  EXPECT_EQ(nothing.milliseconds("TUTTI_OPERATION_TIMEOUT_MS"), plain.operationTimeout);
  EXPECT_EQ(nothing.milliseconds("TUTTI_HEARTBEAT_MS"), plain.heartbeat);
  EXPECT_EQ(nothing.isOn("TUTTI_ENCRYPT"), plain.encrypt);
  EXPECT_EQ(textOf(schedule::parseChannels(nothing.text("TUTTI_CHANNELS"))), textOf(plain.channels));
  EXPECT_EQ(nothing.number("TUTTI_GROUP_SIZE"), plain.groupSize);
}

// As NCCL's users write them.
TEST(Settings, NamesOfAlgorithmsAndProtocolsCountInAnyCaseOfLetters) {
  const test::Settings set({{"TUTTI_ALGO", "Ring"}, {"TUTTI_PROTOCOL", "LL128"}});
  const comm::Config config = comm::Config::fromEnvironment();
  EXPECT_EQ(config.algorithms, schedule::Algorithm::kRing);
  EXPECT_EQ(config.protocols, Protocol::kLL128);
}

TEST(Settings, AFamilyOfAddressesThatIsNoneIsAnsweredWithAllThatThereAre) {
  for (const std::string value : {"5", "46", "AF_INET", "-4"}) {
    const test::Settings set({test::Setting{"TUTTI_SOCKET_FAMILY", value}});
    try {
      Network::fromEnvironment();
      ADD_FAILURE() << value;
    } catch (const Error& e) {
      EXPECT_EQ(e.what(), "TUTTI_SOCKET_FAMILY=" + value + ": choose 4, 6, or 0 for both");
    }
  }
  const test::Settings set({test::Setting{"TUTTI_SOCKET_FAMILY", "6"}});
  EXPECT_EQ(Network::fromEnvironment().family, 6);
}

// A rank that cannot begin tells the others so over what is left.
TEST(Settings, OfTheNetworkAreReadEachByItself) {
  const test::Settings set({{"TUTTI_SOCKET_IFNAME", "eth"},
                            {"TUTTI_SOCKET_FAMILY", "5"},
                            {"TUTTI_UNIX_SOCKETS", "0"},
                            {"TUTTI_PORT_RANGE", "40000-many"}});
  EXPECT_THROW(Network::fromEnvironment(), Error);
  const Network network = Network::asFarAsReadable();
  EXPECT_EQ(network.interfaces, "eth");
  EXPECT_EQ(network.family, 0);
  EXPECT_FALSE(network.unixSockets);
  EXPECT_EQ(network.firstPort, 0);
  EXPECT_EQ(network.lastPort, 0);
}

TEST(SettingsTable, IsWellFormed) {
  std::set<std::string> names;
  for (const Setting& one : kTable) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name << " is there twice";
    EXPECT_TRUE(std::string_view(one.name).starts_with(kPrefix)) << one.name;
    EXPECT_TRUE(std::string_view(one.help).ends_with('.')) << one.name;
    const bool counts = one.type == Type::kNumber || one.type == Type::kMilliseconds || one.type == Type::kSwitch;
    EXPECT_EQ(counts, one.high > one.low) << one.name;
    if (!counts || *one.fallback == '\0') continue;
    const int64_t fallback = std::stoll(one.fallback);
    EXPECT_TRUE(fallback >= one.low && fallback <= one.high) << one.name;
  }
}

// Those that are names of rows in tables of their own.
template <class Rows>
std::string namesOf(const Rows& rows) {
  std::string names;
  for (const auto& row : rows) names += fmt::format("{}{}", names.empty() ? "" : ", ", row);
  return names;
}

TEST(SettingsTable, ListsTheValuesThatThereAre) {
  std::vector<std::string_view> algorithms, protocols;
  for (int a = 0; a < schedule::kBuiltInAlgorithms; ++a)
    algorithms.push_back(nameOf(static_cast<schedule::Algorithm>(a)));
  for (const ProtocolRow& row : kProtocolRows) protocols.push_back(row.name);
  const auto lists = [](Name name, const std::string& names) {
    return std::string_view(findSetting(name.text())->values).starts_with(names + ";");
  };
  EXPECT_TRUE(lists("TUTTI_ALGO", namesOf(algorithms)));
  EXPECT_TRUE(lists("TUTTI_PROTOCOL", namesOf(protocols)));
}

// The names in string literals: "TUTTI_…" followed by the closing quote or an equals sign.
std::vector<std::string> namesIn(const std::string& source) {
  constexpr std::string_view kStart = "\"TUTTI_", kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  std::vector<std::string> names;
  for (size_t at = source.find(kStart); at != std::string::npos; at = source.find(kStart, at + 1)) {
    const size_t end = source.find_first_not_of(kLetters, at + 1);
    if (end != std::string::npos && end > at + kStart.size() && (source[end] == '"' || source[end] == '='))
      names.push_back(source.substr(at + 1, end - at - 1));
  }
  return names;
}

std::string textOf(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// What the library reads has a row or does not compile; the programs read the environment themselves.
TEST(SettingsTable, HasEveryVariableThatTheSourcesName) {
  size_t seen = 0;
  for (const char* folder : {"src", "transports", "bench", "tools", "kernels"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(TUTTI_SOURCE_DIR "/") + folder)) {
      if (!entry.is_regular_file() || (entry.path().extension() != ".cc" && entry.path().extension() != ".h")) continue;
      for (const std::string& name : namesIn(textOf(entry.path()))) {
        ++seen;
        EXPECT_TRUE(findSetting(name) || name == kTestPrefix) << entry.path() << ": " << name;
      }
    }
  }
  EXPECT_GT(seen, std::size(kTable));
}

// The quoted names in capitals, other than settings', in the sources of a room.
std::set<std::string> foreignNamesIn(const std::string& room) {
  const std::string_view notNames[] = {"TCP"};
  const std::regex name(R"re("((?!TUTTI_)[A-Z][A-Z0-9]*(_[A-Za-z0-9]+)*)")re");
  std::set<std::string> read;
  for (const auto& entry : std::filesystem::directory_iterator(TUTTI_SOURCE_DIR "/src/" + room)) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = textOf(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) {
      const std::string one = (*at)[1];
      if (one.size() > 2 && std::ranges::find(notNames, one) == std::end(notNames)) read.insert(one);
    }
  }
  return read;
}

// The variables that src/launch reads from launchers are those in the list, and the list has no others; and the rest of
// the control plane reads none.
TEST(LauncherNames, AreThoseThatTheSourcesRead) {
  EXPECT_EQ(foreignNamesIn("launch"),
            (std::set<std::string>(control::kLauncherNames.begin(), control::kLauncherNames.end())));
  for (const char* room : {"net", "job", "wire", "join", "shrink", "control"})
    EXPECT_EQ(foreignNamesIn(room), std::set<std::string>()) << room;
}

TEST(SettingsTable, ShowsValuesButNoSecrets) {
  const Environment environment(
      {{"TUTTI_SECRET", "open sesame"}, {"TUTTI_ID", "c0ffee"}, {"TUTTI_RANK", "3"}, {"TUTTI_SECRET_FILE", "/f"}});
  std::string all;
  for (const Shown& row : describeAll(environment)) {
    all += std::string(row.setting->name) + "=" + row.value.value_or("-") + "\n";
  }
  EXPECT_EQ(all.find("sesame"), std::string::npos);
  EXPECT_EQ(all.find("c0ffee"), std::string::npos);
  EXPECT_NE(all.find("TUTTI_SECRET=(set, not shown)\n"), std::string::npos);
  EXPECT_NE(all.find("TUTTI_RANK=3\n"), std::string::npos);
  EXPECT_NE(all.find("TUTTI_SECRET_FILE=/f\n"), std::string::npos);
  EXPECT_NE(all.find("TUTTI_ROOT=-\n"), std::string::npos);
}

TEST(SettingsTable, TellsTheNearestName) {
  const auto near = [](std::string_view name) {
    const Setting* one = nearestSetting(name);
    return std::string(one ? one->name : "");
  };
  EXPECT_EQ(near("TUTTI_TRANPORT"), "TUTTI_TRANSPORT");
  EXPECT_EQ(near("TUTTI_RNAK"), "TUTTI_RANK");
  EXPECT_EQ(near("TUTTI_HEARTBEAT"), "TUTTI_HEARTBEAT_MS");
  EXPECT_EQ(near("TUTTI_debug"), "TUTTI_DEBUG");
  EXPECT_EQ(near("TUTTI_SOCKET_IFACE"), "TUTTI_SOCKET_IFNAME");
  EXPECT_EQ(near("TUTTI_FAVOURITE_COLOUR"), "");
  EXPECT_EQ(near("TUTTI_FOO"), "");
  EXPECT_EQ(near("TUTTI_JOBS"), "TUTTI_JOB");
}

TEST(SettingsTable, ReportsStrangeNamesAndNothingElse) {
  const Environment environment({{"TUTTI_TRANPORT", "a secret in the wrong place"},
                                 {"TUTTI_TRANSPORT", "shm"},
                                 {"TUTTI_TEST_ANYTHING", "1"},
                                 {"TUTTI_FAVOURITE_COLOUR", "blue"},
                                 {"OTHER", "x"}});
  EXPECT_EQ(strangeNames(environment),
            (std::vector<std::string>{"TUTTI_FAVOURITE_COLOUR is not a setting; docs/settings.md lists them",
                                      "TUTTI_TRANPORT is not a setting; did you mean TUTTI_TRANSPORT?"}));
}

// A program with set-user-id is started by anybody, with variables of that user's choosing. As a process of its own:
// the system tells a program when it begins whether it is one.
TEST(SettingsOfOthers, DISABLED_InAPrivilegedProcess) {
  if (::getauxval(AT_SECURE) == 0) ::_exit(kUnprivileged);
  const Environment own;
  const bool blind = !own.find("TUTTI_JOB") && own.names("TUTTI_").empty() && own.number("TUTTI_GROUP_SIZE") == 0;
  ::_exit(blind ? 0 : 1);  // without what sanitizers do at the end: they may not look into such a process
}

TEST(Settings, OfWhoeverStartsAPrivilegedProgramDoNotCount) {
  if (!test::mayBeAnotherUser()) GTEST_SKIP() << "needs root";
  if (kSanitized) GTEST_SKIP() << "a sanitizer may not do in a privileged process what it must";
  const test::Settings set({{"TUTTI_JOB", "theirs"}, {"TUTTI_GROUP_SIZE", "3"}});
  // As nobody who has started a program of root's: only the number of the real user differs.
  const pid_t pid = test::asUser(0, [] {
    if (::setresuid(test::kNobody, 0, 0) != 0) return 99;
    return ::execl("/proc/self/exe", "other", "--gtest_also_run_disabled_tests",
                   "--gtest_output=", "--gtest_filter=SettingsOfOthers.DISABLED_InAPrivilegedProcess",
                   static_cast<char*>(nullptr));
  });
  const int status = test::statusOf(pid);
  if (status == kUnprivileged) GTEST_SKIP() << "this system does not tell a program of its privileges";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Environment().text("TUTTI_JOB"), "theirs") << "here they do";
}

}  // namespace
}  // namespace tutti::settings
