// Settings that may say something else for each operation.
#include "schedule/rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/protocols.h"

namespace tutti::schedule {
namespace {

// What reading the text is refused with; "" where it is not.
template <class Read>
std::string refusalOf(Read read) {
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_LT(std::string(error.what()).size(), 600u);
    return error.what();
  }
  return "";
}

std::string refusalOfAlgorithms(const std::string& text) {
  return refusalOf([&] { parseAlgorithms(text); });
}

std::vector<Algorithm> membersOf(Allowed allowed) {
  std::vector<Algorithm> members;
  for (const Algorithm each : allAlgorithms())
    if (allowed.has(each)) members.push_back(each);
  return members;
}

TEST(Rules, OneNameIsForcedForAllOperations) {
  const AlgorithmRules rules = parseAlgorithms("Tree");
  EXPECT_EQ(rules, AlgorithmRules(Algorithm::kTree));
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    EXPECT_TRUE(rules.says(collective));
    EXPECT_EQ(rules.of(collective).forced(), Algorithm::kTree);
    EXPECT_EQ(membersOf(rules.of(collective)), std::vector{Algorithm::kTree});
  }
}

TEST(Rules, AListIsAChoiceAndForcesNothing) {
  const Allowed two = parseAlgorithms("ring,TREE").of(Collective::kReduce);
  EXPECT_EQ(membersOf(two), (std::vector{Algorithm::kRing, Algorithm::kTree}));
  EXPECT_FALSE(two.forced());
  EXPECT_EQ(two, parseAlgorithms(" tree , ring ").of(Collective::kReduce)) << "the order means nothing";
  EXPECT_EQ(parseAlgorithms("ring,ring"), AlgorithmRules(Algorithm::kRing)) << "nor does a name that is there twice";
}

TEST(Rules, ACircumflexLeavesOut) {
  const Allowed allowed = parseAlgorithms("^tree,direct").of(Collective::kReduce);
  EXPECT_FALSE(allowed.has(Algorithm::kTree) || allowed.has(Algorithm::kDirect));
  EXPECT_TRUE(allowed.has(Algorithm::kRing));
  EXPECT_TRUE(allowed.has(static_cast<Algorithm>(kMostAlgorithms - 1))) << "what a program may register later";
  const Allowed last =
      parseAlgorithms("^tree,oneshot,twoshot,halving,bruck,direct,hierarchical,doubling,twopass").of({});
  EXPECT_EQ(membersOf(last), std::vector{Algorithm::kRing});
  EXPECT_FALSE(last.forced()) << "nobody has named it";
}

TEST(Rules, OperationsHaveTheirOwnAndTheRestHasWhatStandsAlone) {
  for (const char* text :
       {"tree;all_reduce:ring;broadcast:^tree,oneshot", " broadcast : ^oneshot,tree;AllReduce:Ring;tree",
        "all-reduce:ring ; tree ; Broadcast:^tree,oneshot"}) {
    const AlgorithmRules rules = parseAlgorithms(text);
    EXPECT_EQ(rules.of(Collective::kAllReduce), Algorithm::kRing) << text;
    EXPECT_EQ(rules.of(Collective::kBroadcast), Allowed::allBut({Algorithm::kTree, Algorithm::kOneShot})) << text;
    EXPECT_EQ(rules.of(Collective::kAllGather), Algorithm::kTree) << text;
    EXPECT_EQ(rules.of(Collective::kBarrier), Algorithm::kTree) << "a barrier is an operation of its own";
  }
}

TEST(Rules, WithoutADefaultNothingIsSaidOfTheRest) {
  const AlgorithmRules rules = parseAlgorithms("alltoall:direct");
  EXPECT_TRUE(rules.says(Collective::kAllToAll));
  EXPECT_FALSE(rules.says(Collective::kAllToAllV));
  EXPECT_FALSE(rules.of(Collective::kAllReduce).says());
  EXPECT_TRUE(rules.of(Collective::kAllReduce).has(Algorithm::kBruck));
}

TEST(Rules, EveryOperationIsFoundByItsName) {
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    EXPECT_EQ(operationCalled(commandName(collective)), collective);
    const ChannelRules rules = parseChannels(commandName(collective) + ":3");
    for (int d = 0; d < kCollectives; ++d) EXPECT_EQ(rules.of(static_cast<Collective>(d)), c == d ? 3 : 0);
  }
  EXPECT_EQ(operationCalled("ReduceScatterV"), Collective::kReduceScatterV);
  EXPECT_EQ(operationCalled("SendRecv"), Collective::kSendRecv);
  EXPECT_EQ(operationCalled(""), std::nullopt);
  EXPECT_EQ(operationCalled("__"), std::nullopt);
}

TEST(Rules, ChannelsAreNumbers) {
  const ChannelRules rules = parseChannels("2;allreduce:8;broadcast:0");
  EXPECT_EQ(rules.of(Collective::kAllReduce), 8);
  EXPECT_EQ(rules.of(Collective::kBroadcast), 0);
  EXPECT_EQ(rules.of(Collective::kAllGather), 2);
  EXPECT_EQ(parseChannels("4"), 4);
  EXPECT_EQ(parseChannels("0"), 0);
  EXPECT_TRUE(parseChannels("0").says(Collective::kReduce)) << "as many as pay is said, too";
  for (const char* text : {"65", "-1", "x", "1.5", "0x1", "2,4", "^2", "99999999999999999999", "all_reduce:65"})
    EXPECT_NE(refusalOf([&] { parseChannels(text); })
                  .find("is no number of channels; expected a whole number from 0 to "
                        "64"),
              std::string::npos)
        << text;
}

TEST(Rules, ProtocolsHaveTheSameGrammar) {
  const plan::ProtocolRules rules = plan::parseProtocols("^LL128;sendrecv:ll;allgather:simple,ll");
  EXPECT_FALSE(rules.of(Collective::kReduce).has(Protocol::kLL128));
  EXPECT_EQ(rules.of(Collective::kSendRecv), Protocol::kLL);
  EXPECT_EQ(rules.of(Collective::kAllGather), plan::AllowedProtocols::only({Protocol::kSimple, Protocol::kLL}));
  EXPECT_EQ(plan::textOf(rules), "^ll128;sendrecv:ll") << "of three, two are all but the third";
}

TEST(Rules, WhatMeansTheSameHasTheSameText) {
  const auto text = [](const char* rules) { return textOf(parseAlgorithms(rules)); };
  EXPECT_EQ(textOf(AlgorithmRules()), "");
  EXPECT_EQ(text("Ring"), "ring");
  EXPECT_EQ(text("tree,ring"), "ring,tree");
  EXPECT_EQ(text("^ring"), "^ring");
  EXPECT_EQ(text("ring;AllReduce:ring"), "ring");
  EXPECT_EQ(text("broadcast:tree;tree;all-reduce:^ring"), "tree;all_reduce:^ring");
  EXPECT_EQ(text("broadcast:tree;allreduce:ring"), "all_reduce:ring;broadcast:tree");
  EXPECT_EQ(text("^tree,oneshot,twoshot,halving,bruck,direct,hierarchical,doubling,twopass"),
            "^tree,oneshot,twoshot,halving,bruck,direct,hierarchical,doubling,twopass");
  EXPECT_EQ(textOf(parseChannels("0")), "");
  EXPECT_EQ(textOf(parseChannels("allreduce:0;4;reduce:4")),
            textOf(parseChannels(textOf(parseChannels("4;allreduce:0")))));
  for (const char* rules :
       {"ring", "ring,tree", "^ring", "tree;all_reduce:^ring;alltoall:bruck", "barrier:oneshot,ring"})
    EXPECT_EQ(parseAlgorithms(text(rules)), parseAlgorithms(rules)) << rules;
}

TEST(Rules, WhatIsWrongIsNamed) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"rings", "'rings' is no algorithm; choose one of: ring, tree, "},
      {"ring,rings", "'rings' is no algorithm"},
      {"alreduce:ring", "'alreduce' is no operation; choose one of: all_reduce, all_gather, "},
      {":ring", "'' is no operation; choose one of: all_reduce"},
      {"ring;tree", "'ring;tree' has two values for all operations that are not named; give one"},
      {"allreduce:ring;all_reduce:tree", "has two values for all_reduce; give one"},
      {"allreduce:ring;all_reduce:ring", "has two values for all_reduce; give one"},
      {"", "part 1 of '' is empty; write a value for all, or operation:value, with ; between two"},
      {"ring;", "part 2 of 'ring;' is empty"},
      {";ring", "part 1 of ';ring' is empty"},
      {"ring; ;tree", "part 2 of "},
      {"allreduce:", "part 1 of 'allreduce:' is empty"},
      {"ring,", "'ring,' has an empty name; write names with a comma between two"},
      {"^", "'^' has an empty name"},
      {",", "',' has an empty name"},
      {"ring,^tree", "'ring,^tree' has a ^ inside; put it in front of the list"},
      {"^^ring", "'^^ring' has a ^ inside"},
      {"^ring,tree,oneshot,twoshot,halving,bruck,direct,hierarchical,doubling,twopass", "leaves none to choose from"},
      {"sendrecv:ring", "'ring', but a message between two ranks has no algorithms; leave sendrecv out"},
      {"all_reduce:ring:tree", "'ring:tree' is no algorithm"},
      {std::string("ring\0", 5), "is no algorithm"},
      {"\x1b[31m", "is no algorithm"},
  };
  for (const auto& [text, words] : all)
    EXPECT_NE(refusalOfAlgorithms(text).find(words), std::string::npos) << text << ": " << refusalOfAlgorithms(text);
  EXPECT_EQ(refusalOf([] { plan::parseProtocols("fast"); }), "'fast' is no protocol; choose one of: simple, ll, ll128");
  EXPECT_EQ(refusalOf([] { plan::parseProtocols("^simple,ll,ll128"); }),
            "'^simple,ll,ll128' leaves none to choose from");
}

// Whatever its length is, a text is refused, or means something, soon; and its error stays short.
TEST(Rules, TextsOfAMegabyteAreTakenOrRefused) {
  constexpr size_t kMuch = 1 << 20;
  const auto often = [](const std::string& part) {
    std::string text;
    while (text.size() < kMuch) text += part;
    return text;
  };
  for (const char* part :
       {";", ":", "^", ",", "x", "all_reduce:", "ring;", "all_reduce:ring;", "^ring,", "\xff", "\x1b"})
    EXPECT_NE(refusalOfAlgorithms(often(part)), "") << part;
  EXPECT_NE(refusalOf([&] { parseChannels(often("1")); }), "");
  EXPECT_NE(refusalOf([&] { plan::parseProtocols(often("ll;")); }), "");
  EXPECT_EQ(plan::parseProtocols(often("ll,") + "ll"), Protocol::kLL);
}

}  // namespace
}  // namespace tutti::schedule
