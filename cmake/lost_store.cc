// Ends with 1 where the compiler has lost a store (docs/decisions/0018-a-compiler-that-loses-a-store.md). Nothing here
// is undefined: two members of a copy are compared as one number, and the copy is then stored where nobody sees the
// change.
#include <cstdint>

namespace {

struct Mark {
  uint64_t count = 0;
  uint32_t operation = 0;
  uint16_t root = 0;
  uint8_t kind = 0, op = 0;
};

struct Report {
  uint32_t ready = 0, trouble = 0, unused[4] = {};
  Mark theirs, mine;
};

struct Block {
  Mark mine;
  uint32_t* reporting;
  Report* report;
};

inline void report(Block& block, const Report& what) {
  if (__atomic_exchange_n(block.reporting, 1u, __ATOMIC_RELAXED) != 0) return;
  Report& there = *block.report;
  there.trouble = what.trouble;
  there.theirs = what.theirs;
}

inline bool matches(Block& block, const Mark& posted) {
  const Mark& mine = block.mine;
  const Mark theirs = posted;
  const bool same = theirs.count == mine.count && theirs.operation == mine.operation && theirs.root == mine.root &&
                    theirs.kind == mine.kind && theirs.op == mine.op;
  if (same) return true;
  Report what;
  what.trouble = same ? 2 : 1;
  what.theirs = theirs;
  report(block, what);
  return false;
}

[[gnu::noinline]] bool matchesAt(Block& block, const Mark& posted) { return matches(block, posted); }

}  // namespace

int main() {
  static Report there;
  uint32_t reporting = 0;
  Block block{{3, 4, 5, 6, 7}, &reporting, &there};
  matchesAt(block, {13, 14, 15, 16, 17});
  return there.theirs.root == 15 ? 0 : 1;
}
