// A number from a number, each bit of it from all bits: the finaliser of splitmix64 (Steele, Lea, Flood: "Fast
// splittable pseudorandom number generators", OOPSLA 2014; its constants are those of David Stafford's variant 13).
#pragma once
#include <cstdint>

namespace tutti::proof {

inline uint64_t mix(uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace tutti::proof
