// Systems as pictures: what is in them, read back as XML.
#include "drawing/drawing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <pugixml.hpp>
#include <regex>
#include <set>

#include "catalog/known_systems.h"
#include "drawing/labels.h"
#include "drawing/shown.h"
#include "exchange/system_file.h"
#include "unit/topology_facts.h"

namespace tutti::drawing {
namespace {

using topology::DeviceKind;
using topology::System;

class Picture {
 public:
  explicit Picture(const std::string& svg) {
    const auto read = document_.load_buffer(svg.data(), svg.size(), pugi::parse_full);
    EXPECT_TRUE(read) << read.description();
  }
  Picture(const System& system, const std::string& title) : Picture(drawSystem(system, title, ringByNumber(system))) {}

  std::vector<pugi::xml_node> all(const char* xpath) const {
    std::vector<pugi::xml_node> nodes;
    for (const auto& each : document_.select_nodes(xpath)) nodes.push_back(each.node());
    return nodes;
  }
  size_t count(const char* element, const char* style) const {
    return all(fmt::format("//{}[@class='{}']", element, style).c_str()).size();
  }
  // How many texts are just that.
  size_t said(std::string_view text) const {
    const auto texts = all("//text");
    return static_cast<size_t>(
        std::ranges::count_if(texts, [&](const auto& node) { return text == node.child_value(); }));
  }
  bool tells(std::string_view part) const {
    const auto texts = all("//text");
    return std::ranges::any_of(
        texts, [&](const auto& node) { return std::string_view(node.child_value()).find(part) != std::string::npos; });
  }
  double number(const char* attribute) const { return document_.child("svg").attribute(attribute).as_double(); }

 private:
  pugi::xml_document document_;
};

Picture pictureOf(const char* system) { return {topology::makeKnownSystem(system), system}; }

Box boxOf(const pugi::xml_node& node) {
  const auto number = [&](const char* name) { return node.attribute(name).as_double(); };
  return {number("x"), number("y"), number("width"), number("height")};
}

bool overlap(const Box& a, const Box& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

// Of a ring's hops, each has an arrow; the ring's own key has none.
size_t hopsOf(const Picture& picture, int ring) {
  return (picture.count("path", fmt::format("ring r{}", ring).c_str()) - 1) / 2;
}

// A host with so many GPUs, and a NIC and a switch for each.
std::string hostXml(int host, int gpus, const char* nvlinks = "") {
  std::string text = fmt::format(
      "<cpu numaid=\"0\" host_hash=\"{:#x}\" affinity=\"ff\" arch=\"x86_64\" "
      "vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"1\">",
      host + 1);
  for (int i = 0; i < gpus; ++i)
    text += fmt::format(
        "<pci busid=\"{0:04x}:01:00.0\" class=\"0x060400\" link_speed=\"32 GT/s\" link_width=\"16\">"
        "<pci busid=\"{0:04x}:02:00.0\" class=\"0x030200\" link_speed=\"32 GT/s\" link_width=\"16\">"
        "<gpu dev=\"{0}\" sm=\"90\">{1}</gpu></pci>"
        "<pci busid=\"{0:04x}:03:00.0\" class=\"0x020700\" link_speed=\"32 GT/s\" link_width=\"16\">"
        "<nic><net name=\"mlx5_{0}\" dev=\"{0}\" speed=\"400000\" port=\"1\"/></nic></pci></pci>",
        i, nvlinks);
  return text + "</cpu>";
}

System systemOf(const std::string& content) {
  return topology::readSystem("<system version=\"1\">" + content + "</system>", "test.xml");
}

TEST(Drawing, HgxH100) {
  const Picture picture = pictureOf("hgx-h100");
  EXPECT_EQ(picture.count("rect", "host"), 1u);
  EXPECT_EQ(picture.count("rect", "numa"), 2u);
  EXPECT_EQ(picture.count("rect", "switch"), 8u);
  EXPECT_EQ(picture.count("rect", "gpu"), 8u);
  EXPECT_EQ(picture.count("rect", "nic"), 8u);
  EXPECT_EQ(picture.count("rect", "nvswitch"), 4u);
  EXPECT_EQ(picture.count("rect", "fabric"), 1u);
  EXPECT_EQ(picture.said("18 NVLinks"), 8u);
  EXPECT_EQ(picture.said("370.8 GB/s"), 8u);
  EXPECT_EQ(picture.said("40 NVLinks, 5 a GPU"), 2u);
  EXPECT_EQ(picture.said("48 GB/s"), 16u);  // switches and GPUs
  EXPECT_EQ(picture.said("PCI 48 GB/s"), 8u);
  EXPECT_EQ(picture.said("400 Gb/s"), 8u);
  EXPECT_EQ(picture.said("between memory nodes: 22 GB/s"), 1u);
  EXPECT_EQ(hopsOf(picture, 0), 8u);
  EXPECT_TRUE(picture.tells("GPU 0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 0: 8 NVL, 370.8 GB/s at the narrowest"));
}

TEST(Drawing, AzureNdv4) {
  const Picture picture = pictureOf("azure-ndv4");
  EXPECT_EQ(picture.count("rect", "numa"), 4u);
  EXPECT_EQ(picture.count("rect", "nvswitch"), 6u);
  EXPECT_EQ(picture.said("12 NVLinks"), 8u);
  std::vector<std::string> gpus;  // as they stand
  for (const auto& each : picture.all("//g[rect/@class='gpu']/text[@class='name']")) gpus.push_back(each.child_value());
  EXPECT_EQ(gpus, (std::vector<std::string>{"GPU 2", "GPU 3", "GPU 0", "GPU 1", "GPU 6", "GPU 7", "GPU 4", "GPU 5"}));
}

TEST(Drawing, LinksFromGpuToGpu) {
  const Picture picture = pictureOf("azure-ndv2");
  EXPECT_EQ(picture.count("g", "bundle"), 16u);
  EXPECT_EQ(picture.count("rect", "fabric"), 0u);
  EXPECT_GE(picture.said("2 NVLinks, 40 GB/s"), 4u);
  EXPECT_TRUE(picture.tells("6 NVL, 2 NVB, 20 GB/s at the narrowest"));
}

TEST(Drawing, WithoutNvlinks) {
  const Picture picture = pictureOf("pcie-box");
  EXPECT_EQ(picture.count("g", "bundle"), 0u);
  EXPECT_EQ(picture.said("SYS 22 GB/s"), 2u);
  EXPECT_TRUE(picture.tells("4 PIX, 2 PXB, 2 SYS, 22 GB/s at the narrowest"));
}

TEST(Drawing, WithoutGpusThereIsNoRing) {
  const Picture picture = pictureOf("azure-hbv3");
  EXPECT_EQ(picture.count("rect", "numa"), 4u);
  EXPECT_EQ(picture.said("30 processing units"), 4u);
  EXPECT_TRUE(picture.all("//path[contains(@class, 'ring')]").empty());
}

TEST(Drawing, StacksTheNicsOfAGpu) {
  const Picture picture = pictureOf("aws-p5");
  EXPECT_EQ(picture.count("rect", "nic"), 32u);
  std::set<double> places;
  for (const auto& each : picture.all("//rect[@class='nic']")) places.insert(boxOf(each).x);
  EXPECT_EQ(places.size(), 8u);
}

TEST(Drawing, EveryKnownSystemIsWithinThePageAndApart) {
  for (const topology::KnownSystem& known : topology::knownSystems()) {
    SCOPED_TRACE(known.name);
    const Picture picture = pictureOf(std::string(known.name).c_str());
    std::vector<Box> boxes;
    for (const auto& each : picture.all("//g[@class='device']/rect")) boxes.push_back(boxOf(each));
    for (size_t i = 0; i < boxes.size(); ++i) {
      EXPECT_TRUE(boxes[i].x >= 0 && boxes[i].right() <= picture.number("width"));
      EXPECT_TRUE(boxes[i].y >= 0 && boxes[i].bottom() <= picture.number("height"));
      for (size_t j = 0; j < i; ++j) EXPECT_FALSE(overlap(boxes[i], boxes[j])) << i << " and " << j;
    }
  }
}

TEST(Drawing, IsTheSameTwiceAndNeedsNothing) {
  for (const topology::KnownSystem& known : topology::knownSystems()) {
    const System system = topology::makeKnownSystem(known.name);
    const std::string svg = drawSystem(system, "x", ringByNumber(system));
    EXPECT_EQ(svg, drawSystem(system, "x", ringByNumber(system)));
    EXPECT_FALSE(
        std::regex_search(svg, std::regex("href|url\\(|@import|<script|<image|<use|<foreignObject|\\bon\\w+=")));
    EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
  }
}

TEST(Drawing, RingsHaveTheirColours) {
  const System system = topology::makeKnownSystem("hgx-h100");
  Ring forth = ringByNumber(system).at(0), back = forth;
  std::ranges::reverse(back.order);
  const Picture two(drawSystem(system, "two", {forth, back}));
  EXPECT_EQ(hopsOf(two, 0), 8u);
  EXPECT_EQ(hopsOf(two, 1), 8u);
  const Picture many(drawSystem(system, "many", std::vector<Ring>(kMostRings + 3, forth)));
  EXPECT_TRUE(many.tells("Left out are rings: 3. A picture has 8 at most."));
}

TEST(Drawing, TextsOfFilesAreTexts) {
  const std::string evil = "&lt;script&gt;&amp;&quot;&#x27;]]&gt;&#x202e;&#xffff;";
  const System system = systemOf("<cpu numaid=\"0\" host_hash=\"" + evil + "\" arch=\"" + evil + "\" vendor=\"" + evil +
                                 "\" familyid=\"1\" modelid=\"1\"><nic><net name=\"" + evil +
                                 "\" dev=\"0\" speed=\"1000\" port=\"1\"/></nic></cpu>");
  const std::string svg = drawSystem(system, "<script>\x01\xff&\"", {});
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("\xef\xbf\xbf"), std::string::npos);  // no character of XML
  const Picture picture(svg);
  EXPECT_EQ(picture.said("<script>\\x01\\xff&\""), 1u);
  EXPECT_TRUE(picture.tells("<script>"));
}

TEST(Drawing, SeveralHosts) {
  const char* hidden = "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>";
  const Picture picture(systemOf(hostXml(0, 2, hidden) + hostXml(1, 2, hidden)), "two");
  EXPECT_EQ(picture.count("rect", "host"), 2u);
  EXPECT_EQ(picture.said("host 0x1"), 1u);
  EXPECT_EQ(picture.said("hidden fabric"), 1u);
  EXPECT_EQ(picture.said("72 NVLinks, 18 a GPU"), 1u);
  EXPECT_EQ(hopsOf(picture, 0), 4u);
}

// Host for host, not all GPUs 0 first.
TEST(Drawing, TheRingByNumberGoesHostByHost) {
  const System system = systemOf(hostXml(0, 2) + hostXml(1, 2));
  const std::vector<int> order = ringByNumber(system).at(0).order;
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_EQ(order.size(), 4u);
  EXPECT_TRUE(ringByNumber(systemOf(hostXml(0, 1))).empty());
}

TEST(Drawing, OfAHugeSystemItSaysWhatItLeavesOut) {
  std::string content;
  for (int host = 0; host < 20; ++host) content += hostXml(host, 8);
  const System system = systemOf(content);
  const Picture picture(system, "huge");
  EXPECT_EQ(picture.count("g", "device"), kMostInTree);
  // Of twenty hosts with 25 devices each, ten and the first six of the next are there.
  EXPECT_TRUE(
      picture.tells("Left out are memory nodes: 9, switches: 78, GPUs: 78, NICs: 79. A picture has at most 256"));
  EXPECT_TRUE(picture.tells("128 more → 0"));
}

TEST(Drawing, ASystemOfNothing) {
  const Picture picture(System{}, "nothing");
  EXPECT_EQ(picture.said("nothing"), 1u);
  EXPECT_EQ(picture.count("rect", "host"), 0u);
}

TEST(Drawing, SpansThatTouchHaveRowsOfTheirOwn) {
  EXPECT_EQ(packed({{0, 100}, {0, 40}, {50, 90}, {30, 60}}), (std::vector<int>{2, 1, 1, 0}));
  EXPECT_TRUE(packed({}).empty());
}

}  // namespace
}  // namespace tutti::drawing
