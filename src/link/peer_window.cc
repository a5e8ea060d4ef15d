#include "link/peer_window.h"

#include <utility>

#include "base/error.h"
#include "window/own_window.h"

namespace tutti::link {

int windowForPeers(std::string& why) try {
  return window::OwnWindow::ofProcess().fileForPeers(why);
} catch (const std::bad_alloc&) {
  why = kNoMemory;
  return -1;
}

void readWindow(Connection& connection, UniqueFd file, std::string absent) {
  std::string why = std::move(absent);
  if (file)
    if (auto view = window::View::of(std::move(file), why)) return connection.readFrom(std::move(view));
  connection.remark += "; what is in memory of tuttiMemAlloc there is not read in place: " + why;
}

}  // namespace tutti::link
