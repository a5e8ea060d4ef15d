// Where the GPUs of a communicator are: what one rank of each host tells, and what all make of it.
#include "site/site.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "catalog/known_systems.h"
#include "exchange/nccl_xml.h"
#include "site/at_hand.h"

namespace tutti::site {
namespace {

using topology::PeerInfo;
using topology::System;

System mesh() { return topology::makeKnownSystem("azure-ndv2"); }

// Ranks on the mesh's GPUs of those numbers, on hosts of those numbers.
std::vector<PeerInfo> ranksOn(const std::vector<int>& gpus, const std::vector<int>& hosts) {
  const System system = mesh();
  const std::vector<int> all = byNumber(system, topology::DeviceKind::kGpu);
  std::vector<PeerInfo> infos;
  for (size_t rank = 0; rank < gpus.size(); ++rank) {
    PeerInfo& info = infos.emplace_back();
    info.hostId = 7 - static_cast<uint64_t>(hosts[rank]);
    info.hostName = "n" + std::to_string(hosts[rank]);
    info.device = gpus[rank];
    info.gpu = static_cast<uint64_t>(100 * hosts[rank] + gpus[rank]);
    info.gpuBusId = system.devices[all[static_cast<size_t>(gpus[rank])]].pci->busId;
  }
  return infos;
}

std::vector<PeerInfo> eightOf(int hosts) {
  std::vector<int> gpus, hostOf;
  for (int rank = 0; rank < 8 * hosts; ++rank) gpus.push_back(rank % 8), hostOf.push_back(rank / 8);
  return ranksOn(gpus, hostOf);
}

std::vector<Bytes> nothingOf(const std::vector<PeerInfo>& infos) { return std::vector<Bytes>(infos.size()); }

std::string refusalOf(const std::vector<PeerInfo>& infos, const std::vector<Bytes>& words) {
  try {
    siteOf(infos, words);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kRemote);
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Site, AWordArrivesAsItWas) {
  HostWord word;
  word.order = {0, 3, 1, 2}, word.asNumbered = false, word.along = topology::PathType::kNvLink;
  word.ringGBs = 40, word.pairGBs = 9, word.nicGBs = 12, word.networkGBs = 1.5, word.source = "as detected";
  const Bytes bytes = encode(word);
  EXPECT_EQ(decodeHostWord(bytes), word);
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(decodeHostWord(std::span(bytes).first(length)), Error) << length;
  for (double HostWord::*rate : {&HostWord::ringGBs, &HostWord::pairGBs, &HostWord::nicGBs, &HostWord::networkGBs})
    for (const double wrong : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
      HostWord other = word;
      other.*rate = wrong;
      EXPECT_THROW(decodeHostWord(encode(other)), Error);
    }
}

TEST(Site, OneHostHasItsOrder) {
  const auto infos = eightOf(1);
  auto words = nothingOf(infos);
  words[0] = encode(wordOf(mesh(), "as detected", infos, 0));
  const Site site = siteOf(infos, words);
  EXPECT_EQ(site.within, (std::vector<int>{0, 3, 2, 1, 7, 4, 5, 6}));
  EXPECT_NEAR(site.ringGBs, 40, 1e-6);
  EXPECT_LT(site.gpuGBs, 20);
  EXPECT_TRUE(has(site.text, "by the NVLinks: 0 3 2 1 5 6 7 4 (40.0 GB/s to the next")) << site.text;
  EXPECT_TRUE(has(site.text, "as detected")) << site.text;
}

TEST(Site, HostsWithUnlikeAnswers) {
  const auto infos = eightOf(3);
  auto words = nothingOf(infos);
  words[0] = encode(wordOf(mesh(), "as detected", infos, 0));
  HostWord slow = wordOf(mesh(), "as detected", infos, 8);
  slow.order = {8, 9, 10, 11, 12, 13, 14, 15}, slow.asNumbered = true;
  slow.ringGBs = 30, slow.nicGBs = 8, slow.networkGBs = 0;
  words[8] = encode(slow);
  HostWord lost;
  lost.why = "it was not to be had";
  words[16] = encode(lost);
  const Site site = siteOf(infos, words);
  EXPECT_EQ(std::vector<int>(site.within.begin(), site.within.begin() + 8), (std::vector<int>{0, 3, 2, 1, 7, 4, 5, 6}));
  EXPECT_TRUE(std::ranges::is_sorted(site.within.begin() + 8, site.within.begin() + 16));
  EXPECT_EQ(std::vector<int>(site.within.begin() + 16, site.within.end()), std::vector<int>(8, 0));
  EXPECT_NEAR(site.ringGBs, 30, 1e-6);
  EXPECT_NEAR(site.nicGBs, 8, 1e-6);
  EXPECT_NEAR(site.networkGBs, 1.25, 1e-6);
  EXPECT_TRUE(has(site.text, "not by the links of n2: it was not to be had")) << site.text;
}

TEST(Site, RanksAreDealtToHostsAndGpus) {
  const auto infos = ranksOn({0, 0, 5, 5, 4, 4, 1, 1}, {0, 1, 0, 1, 0, 1, 0, 1});
  auto words = nothingOf(infos);
  words[0] = encode(wordOf(mesh(), "as detected", infos, 0));
  words[1] = encode(wordOf(mesh(), "as detected", infos, 1));
  const Site site = siteOf(infos, words);
  EXPECT_EQ(site.within, (std::vector<int>{0, 0, 2, 2, 1, 1, 3, 3}));
  EXPECT_NEAR(site.ringGBs, 20, 1e-6);
  EXPECT_TRUE(has(site.text, "by the NVLinks: 0 4 2 6 1 5 3 7 (")) << site.text;
}

TEST(Site, WhatIsNotKnownLimitsNothing) {
  const auto infos = eightOf(1);
  const Site one = siteOf(ranksOn({3, 3}, {0, 0}), std::vector<Bytes>(2));
  EXPECT_TRUE(one.within.empty());
  EXPECT_TRUE(has(one.text, "there is one GPU")) << one.text;
  auto strangers = infos;
  strangers[5].gpuBusId = "0000:77:00.0";
  auto words = nothingOf(infos);
  words[0] = encode(wordOf(mesh(), "as detected", strangers, 0));
  const Site site = siteOf(infos, words);
  EXPECT_TRUE(site.within.empty());
  EXPECT_EQ(site.gpuGBs + site.ringGBs + site.nicGBs + site.networkGBs, 0);
  EXPECT_TRUE(has(site.text, "by the numbers of the ranks")) << site.text;
  EXPECT_TRUE(has(site.text, "the GPU of rank 5 (0000:77:00.0)")) << site.text;
}

TEST(Site, WhereNoOrderIsBetterTheNumbersStay) {
  auto infos = eightOf(1);
  const System system = topology::makeKnownSystem("hgx-h100");
  const std::vector<int> gpus = byNumber(system, topology::DeviceKind::kGpu);
  for (size_t rank = 0; rank < 8; ++rank) infos[rank].gpuBusId = system.devices[gpus[rank]].pci->busId;
  auto words = nothingOf(infos);
  words[0] = encode(wordOf(system, "as detected", infos, 0));
  const Site site = siteOf(infos, words);
  EXPECT_TRUE(site.within.empty());
  EXPECT_NEAR(site.ringGBs, 370.8, 1e-6);
  EXPECT_TRUE(has(site.text, "as no other carries more")) << site.text;
}

TEST(Site, WordsThatNobodySaysAreRefused) {
  const auto infos = eightOf(2);
  auto words = nothingOf(infos);
  const HostWord own = wordOf(mesh(), "as detected", infos, 0);
  words[8] = encode(own);  // of the ranks of another host
  EXPECT_TRUE(has(refusalOf(infos, words), "rank 8 (host n1) tells an order of other ranks"));
  words[8].clear();
  words[1] = encode(own);  // the first of the host speaks
  EXPECT_TRUE(has(refusalOf(infos, words), "rank 1 (host n0)"));
  words[1].clear();
  HostWord twice = own;
  twice.order[3] = twice.order[2];
  words[0] = encode(twice);
  EXPECT_NE(refusalOf(infos, words), "");
  twice.why = "nothing is known, but there is an order";
  words[0] = encode(twice);
  EXPECT_NE(refusalOf(infos, words), "");
  words[0] = Bytes(5, std::byte{1});
  EXPECT_NE(refusalOf(infos, words), "");
}

TEST(Site, OnlyWhoHasSomethingToTellLooks) {
  EXPECT_TRUE(wordAtHand(ranksOn({2, 2}, {0, 0}), 0, "").empty());   // one GPU
  EXPECT_TRUE(wordAtHand(eightOf(1), 1, "").empty());                // not the first
  EXPECT_FALSE(wordAtHand(ranksOn({2, 2}, {0, 1}), 1, "").empty());  // a GPU each, and a network
}

// --- TUTTI_TOPO_FILE ---

class TopoFile : public testing::Test {
 protected:
  TopoFile() : path_(std::filesystem::temp_directory_path() / fmt::format("tutti-site-{}.xml", ::getpid())) {}
  ~TopoFile() override { std::filesystem::remove(path_); }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  std::string path() const { return path_.string(); }
  // What the first of eight ranks tells, and what the log has of it.
  HostWord told() {
    ::testing::internal::CaptureStderr();
    const HostWord word = decodeHostWord(wordAtHand(eightOf(1), 0, path()));
    log_ = ::testing::internal::GetCapturedStderr();
    return word;
  }

  std::filesystem::path path_;
  std::string log_;
};

TEST_F(TopoFile, TellsTheLinks) {
  write(writeNcclXml(mesh()));
  const HostWord word = told();
  EXPECT_EQ(word.why, "");
  EXPECT_EQ(word.order, (std::vector<int>{0, 3, 2, 1, 5, 6, 7, 4}));
  EXPECT_EQ(word.source, "TUTTI_TOPO_FILE=" + path());
  EXPECT_EQ(log_, "");
}

// This machine has no such GPUs, so that nothing is known then.
TEST_F(TopoFile, ThatIsOfNoUseIsWarnedOfOnce) {
  const auto expectWarned = [&](const std::string& what) {
    const HostWord word = told();
    EXPECT_NE(word.why, "");
    EXPECT_TRUE(has(log_, "TUTTI_TOPO_FILE=" + path() + " is not used")) << log_;
    EXPECT_TRUE(has(log_, what)) << log_;
    EXPECT_EQ(std::ranges::count(log_, '\n'), 1) << log_;
    EXPECT_NE(told().why, "");
    EXPECT_EQ(log_, "");
    path_ = path() + "x";
  };
  expectWarned("cannot be read");
  write("<html/>");
  expectWarned("it begins with");
  std::filesystem::remove(path().substr(0, path().size() - 1));
  write("<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"zz\"/></cpu></system>");
  expectWarned("zz");
  std::filesystem::remove(path().substr(0, path().size() - 1));
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);  // whose reader would wait
  expectWarned("is no file");
  std::filesystem::remove(path().substr(0, path().size() - 1));
}

}  // namespace
}  // namespace tutti::site
