// What distinguishes one program from its siblings.
#pragma once
#include <cstddef>
#include <vector>

#include "tutti/tutti.h"

namespace tutti::perf {

// Sizes and places, in elements. In place, both start from the receive buffer.
struct Layout {
  size_t parameter;                      // the count that the call takes
  size_t send, receive;                  // what the buffers hold
  size_t sendStep = 0, receiveStep = 0;  // in place, rank r's part starts at r times this
};

// Where a result comes from.
struct Piece {
  static constexpr int kReduced = -1;
  size_t at, count;  // in the receive buffer
  int source;        // the rank whose input it is, or kReduced
  size_t from;       // its first element there
};

struct Place {
  int rank, ranks, root;
};

struct Call {
  const void* send;
  void* receive;
  size_t count;
  tuttiDataType_t type;
  tuttiRedOp_t op;
  Place place;
  tuttiComm_t comm;
  tuttiStream_t stream;
  const tuttiCallConfig_t* config = nullptr;  // of the call, or of its send
  const tuttiCallConfig_t* second = nullptr;  // of its receive
};

struct Collective {
  const char* program;
  const char* call;  // the API's name of it, for error texts
  bool reduces, rooted, inPlace;
  // `total` elements is what the size column counts; collectives with a count a rank divide it among the ranks.
  Layout (*layout)(size_t total, int ranks);
  tuttiResult_t (*run)(const Call& call);
  // What the receive buffer holds afterwards; everything else in it is unchanged.
  std::vector<Piece> (*results)(size_t count, const Place& place);
  // Bus bandwidth over algorithm bandwidth.
  double (*busFactor)(int ranks);
};

inline double ringFactor(int ranks) { return static_cast<double>(ranks - 1) / ranks; }
inline double wholeFactor(int) { return 1; }

// The whole of main().
int runProgram(const Collective& collective, int argc, char** argv);

}  // namespace tutti::perf
