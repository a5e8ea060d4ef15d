#include "topology/ports.h"

#include <algorithm>
#include <tuple>

namespace tutti::topology {
namespace {

// Shorter digits at the end are less.
auto orderOf(const Port& port) {
  const size_t digits = port.name.find_last_not_of("0123456789") + 1;
  const std::string number = port.name.substr(digits);
  return std::tuple(port.name.substr(0, digits), number.size(), number, port.ofNic);
}

}  // namespace

void numberPorts(System& system) {
  std::vector<Port*> unnumbered;
  int next = 0;
  for (Device& one : system.devices) {
    if (!one.port) continue;
    next = std::max(next, one.port->number + 1);
    if (one.port->number < 0) unnumbered.push_back(&*one.port);
  }
  std::stable_sort(unnumbered.begin(), unnumbered.end(),
                   [](const Port* a, const Port* b) { return orderOf(*a) < orderOf(*b); });
  for (Port* port : unnumbered) port->number = next++;
}

}  // namespace tutti::topology
