// RDMA devices as the kernel tells them.
#pragma once
#include <string_view>

#include "detect/sysfs.h"
#include "topology/system.h"

namespace tutti::detect {

// What a port's folder (/sys/class/infiniband/X/ports/1) tells: its addresses by their number, without the empty
// places.
std::vector<topology::Gid> gidsOf(const Sysfs& sysfs, const std::string& port);
// Of "200 Gb/sec (4X HDR)"; 0 where it is unknown.
int64_t megabitsOfRate(const std::string& rate);

// What all active ports carry together that a list (base/port_list.h) means; 0 where there is none, or one does not
// tell its rate.
uint32_t rdmaMegabits(const Sysfs& sysfs, std::string_view list);

// Adds to each RDMA device's ports their rate, their layer and their addresses, and takes out those that are not
// active. For systems without links.
void addRdma(topology::System& system, const Sysfs& sysfs);

}  // namespace tutti::detect
