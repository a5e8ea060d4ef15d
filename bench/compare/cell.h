// What is measured: an operation of so many bytes of a type, out of place or in place. Cells come as lines of a file:
// "all_reduce float 1024 in 250", the last word being the microseconds beyond which a rough figure is enough; 0: none
// are.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tutti::compare {

enum class Operation { kAllReduce, kAllGather, kReduceScatter, kBroadcast };
inline constexpr std::array kOperationNames = {"all_reduce", "all_gather", "reduce_scatter", "broadcast"};

enum class Type { kFloat, kDouble, kInt32, kHalf, kBfloat16 };
inline constexpr std::array kTypeNames = {"float", "double", "int32", "half", "bfloat16"};

inline const char* nameOf(Operation operation) { return kOperationNames[static_cast<size_t>(operation)]; }
inline const char* nameOf(Type type) { return kTypeNames[static_cast<size_t>(type)]; }

inline size_t sizeOf(Type type) {
  switch (type) {
    case Type::kDouble:
      return 8;
    case Type::kHalf:
    case Type::kBfloat16:
      return 2;
    default:
      return 4;
  }
}

// `bytes` is the whole vector: what a rank has after an all-gather, or gives to a reduce-scatter.
struct Cell {
  Operation operation = Operation::kAllReduce;
  Type type = Type::kFloat;
  size_t bytes = 0;
  bool inPlace = false;
  double slow = 0;  // microseconds of a call that need no second look; 0: all need it

  // Of one rank's part, where each rank has one. At least an element, so that every rank takes part in small ones too.
  size_t part(int ranks) const { return std::max<size_t>(1, bytes / sizeOf(type) / static_cast<size_t>(ranks)); }
  bool inParts() const { return operation == Operation::kAllGather || operation == Operation::kReduceScatter; }
  bool reduces() const { return operation == Operation::kAllReduce || operation == Operation::kReduceScatter; }
  // Elements of the whole vector.
  size_t whole(int ranks) const {
    return inParts() ? part(ranks) * static_cast<size_t>(ranks) : std::max<size_t>(1, bytes / sizeOf(type));
  }
};

template <class Value, size_t kCount>
Value valueNamed(const std::array<const char*, kCount>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw std::runtime_error("there is no " + name + " to measure");
  return static_cast<Value>(found - names.begin());
}

inline std::vector<Cell> readCells(const std::string& path) {
  std::ifstream file(path);
  std::vector<Cell> cells;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string operation, type, place;
    Cell cell;
    if (!(words >> operation >> type >> cell.bytes >> place >> cell.slow) || (place != "in" && place != "out")) {
      throw std::runtime_error(path + ": no cell: '" + line + "'; one is 'all_reduce float 1024 in 0'");
    }
    cell.operation = valueNamed<Operation>(kOperationNames, operation);
    cell.type = valueNamed<Type>(kTypeNames, type);
    cell.inPlace = place == "in";
    cells.push_back(cell);
  }
  if (cells.empty()) throw std::runtime_error(path + " has no cells, or cannot be read");
  return cells;
}

}  // namespace tutti::compare
