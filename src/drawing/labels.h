// What is said of a system's devices and links, for terminals and pictures: without control characters, and short.
#pragma once
#include <string>
#include <vector>

#include "topology/system.h"

namespace tutti::drawing {

// The link from a device to what it is below; nullptr where there is none.
const topology::Link* upLink(const topology::System& system, int device);

// How many NVLinks a device has, all together.
int nvlinksOf(const topology::System& system, int device);

// A line with all of it: "GPU 0  0000:1b:00.0  sm 90  PCI 32.0 GT/s PCIe x16, 48 GB/s  18 NVLinks".
std::string deviceText(const topology::System& system, int device);

// "400 Gb/s"
std::string speedText(const topology::Port& port);

// The lines of its box, the first of which names it.
std::vector<std::string> boxLines(const topology::System& system, int device);

// "48 GB/s", or "12 GB/s assumed" where speed or width of the link is unknown; "" for what has no link on the bus.
std::string pciText(const topology::System& system, int device);

}  // namespace tutti::drawing
