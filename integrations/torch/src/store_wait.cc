#include "store_wait.h"

#include <algorithm>
#include <thread>

namespace tutti_torch {
namespace {

using std::chrono::steady_clock;

constexpr milliseconds kFirstAsk(1), kLongestAsk(50);

// What a Store throws does not tell time that is over from a Store that is gone: the latter still throws when asked.
bool awaitUnstopped(c10d::Store& store, const std::vector<std::string>& keys, milliseconds timeout) {
  try {
    store.wait(keys, timeout);
    return true;
  } catch (const std::exception&) {
    return store.check(keys);
  }
}

}  // namespace

// A Store's own wait cannot be ended by anybody, and holds up all others who use the same client of it. So where
// somebody may want to end it, this looks again and again, the more seldom the longer it takes.
bool awaitKeys(c10d::Store& store, const std::vector<std::string>& keys, milliseconds timeout, const Stopped& stopped) {
  if (keys.empty()) return true;
  if (!stopped) return awaitUnstopped(store, keys, timeout);
  const auto begun = steady_clock::now();
  for (milliseconds look = kFirstAsk; !store.check(keys); look = std::min(2 * look, kLongestAsk)) {
    if (const auto why = stopped()) std::rethrow_exception(why);
    if (steady_clock::now() - begun > timeout) return false;
    std::this_thread::sleep_for(look);
  }
  return true;
}

}  // namespace tutti_torch
