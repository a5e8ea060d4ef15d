// A made-up machine as the kernel tells of one: files below a folder of its own.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "detect/sysfs.h"
#include "topology/system.h"
#include "unit/topology_facts.h"

namespace tutti::detect {

// What its tests look at.
using topology::bandwidth;
using topology::countOf;
using topology::DeviceKind;
using topology::deviceNamed;
using topology::pathType;
using topology::System;
using topology::timesSaid;

class MachineTree : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "machine-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  Sysfs sysfs() const { return Sysfs(root_); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  void folder(const std::string& path) const { std::filesystem::create_directories(root_ + path); }
  void link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::filesystem::create_symlink(target, root_ + path);
  }
  void files(const std::string& folder, const std::map<std::string, std::string>& texts) const {
    for (const auto& [name, text] : texts) write(folder + "/" + name, text);
  }

  std::string root_;
};

// What is made up of devices, for who adds to them.
inline int addDevice(topology::System& system, topology::DeviceKind kind, int parent, const std::string& busId = "") {
  topology::Device& one = system.devices.emplace_back();
  one.kind = kind;
  one.parent = parent;
  if (kind == topology::DeviceKind::kNuma) one.numa.emplace().number = parent + 1;
  if (kind == topology::DeviceKind::kNic) one.nic.emplace();
  if (kind == topology::DeviceKind::kGpu) one.gpu.emplace();
  if (!busId.empty()) one.pci.emplace().busId = busId;
  return static_cast<int>(system.devices.size()) - 1;
}

inline topology::Port& addPort(topology::System& system, int nic, const std::string& name, int ofNic = -1) {
  topology::Device& one = system.devices[addDevice(system, topology::DeviceKind::kPort, nic)];
  one.port.emplace().name = name;
  one.port->ofNic = ofNic;
  return *one.port;
}

// One memory node.
inline topology::System oneNode() {
  topology::System system;
  addDevice(system, topology::DeviceKind::kNuma, -1);
  return system;
}

}  // namespace tutti::detect
