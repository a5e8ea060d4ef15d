// combine() against memcpy and a plain loop, from a few bytes to what no cache holds.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/host/combine.h"

namespace tutti::kernels {
namespace {

// Buffers of ones, each on its own pages, with the pointers that combine() takes.
class Operands {
 public:
  Operands(DataType type, size_t bytes, int sourceCount, int destinationCount) {
    for (int i = 0; i < sourceCount + destinationCount; ++i) {
      buffers_.emplace_back(bytes + 64);
      fill(buffers_.back().data(), type, bytes);
      if (i < sourceCount)
        sources.push_back(buffers_.back().data());
      else
        destinations.push_back(buffers_.back().data());
    }
  }

  std::vector<const std::byte*> sources;
  std::vector<std::byte*> destinations;

 private:
  static void fill(std::byte* to, DataType type, size_t bytes) {
    for (size_t i = 0; i + sizeOf(type) <= bytes; i += sizeOf(type)) {
      uint64_t one = 1;
      const float floatOne = 1;
      const double doubleOne = 1;
      if (type == DataType::kFloat32) std::memcpy(&one, &floatOne, 4);
      if (type == DataType::kFloat64) std::memcpy(&one, &doubleOne, 8);
      if (sizeOf(type) <= 2 && rowOf(type).isFloat()) one = fromFloat(type, 1);
      std::memcpy(to + i, &one, sizeOf(type));
    }
  }
  std::vector<std::vector<std::byte>> buffers_;
};

void report(benchmark::State& state, size_t bytes, DataType type) {
  state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
  const size_t elements = bytes / sizeOf(type) * static_cast<size_t>(state.iterations());
  state.counters["elements/s"] = benchmark::Counter(static_cast<double>(elements), benchmark::Counter::kIsRate);
}

// Bytes per second are those of one destination.
void combined(benchmark::State& state, DataType type, ReduceOp op, int sources, int destinations) {
  const auto bytes = static_cast<size_t>(state.range(0));
  Operands operands(type, bytes, sources, destinations);
  const Arithmetic arithmetic{type, op, static_cast<uint32_t>(sources), 0};
  for (auto _ : state) {
    combine(arithmetic, operands.destinations.data(), destinations, operands.sources.data(), sources,
            bytes / sizeOf(type));
    benchmark::ClobberMemory();
  }
  report(state, bytes, type);
}

void copiedByMemcpy(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  Operands operands(DataType::kUint8, bytes, 1, 1);
  for (auto _ : state) {
    std::memcpy(operands.destinations[0], operands.sources[0], bytes);
    benchmark::ClobberMemory();
  }
  report(state, bytes, DataType::kUint8);
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((noinline, optimize("O3"), target_clones("avx512f", "avx2", "default")))
#endif
void plainLoop(const float* a, const float* b, float* c, size_t count) {
  for (size_t i = 0; i < count; ++i) c[i] = a[i] + b[i];
}

void addedByPlainLoop(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  Operands operands(DataType::kFloat32, bytes, 2, 1);
  for (auto _ : state) {
    plainLoop(reinterpret_cast<const float*>(operands.sources[0]), reinterpret_cast<const float*>(operands.sources[1]),
              reinterpret_cast<float*>(operands.destinations[0]), bytes / sizeof(float));
    benchmark::ClobberMemory();
  }
  report(state, bytes, DataType::kFloat32);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (int64_t bytes : {8, 64, 1 << 10, 4 << 10, 64 << 10, 1 << 20, 16 << 20}) benchmark->Arg(bytes);
}

BENCHMARK(copiedByMemcpy)->Apply(sizes);
BENCHMARK(addedByPlainLoop)->Apply(sizes);
BENCHMARK_CAPTURE(combined, copy, DataType::kFloat32, ReduceOp::kSum, 1, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, copy_to_4, DataType::kFloat32, ReduceOp::kSum, 1, 4)->Apply(sizes);
BENCHMARK_CAPTURE(combined, float_sum_2, DataType::kFloat32, ReduceOp::kSum, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, float_sum_4, DataType::kFloat32, ReduceOp::kSum, 4, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, float_sum_8, DataType::kFloat32, ReduceOp::kSum, 8, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, float_sum_2_to_4, DataType::kFloat32, ReduceOp::kSum, 2, 4)->Apply(sizes);
BENCHMARK_CAPTURE(combined, float_max_2, DataType::kFloat32, ReduceOp::kMax, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, float_avg_2, DataType::kFloat32, ReduceOp::kAvg, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, double_sum_2, DataType::kFloat64, ReduceOp::kSum, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, bf16_sum_2, DataType::kBfloat16, ReduceOp::kSum, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, bf16_sum_4, DataType::kBfloat16, ReduceOp::kSum, 4, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, bf16_sum_8, DataType::kBfloat16, ReduceOp::kSum, 8, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, fp16_sum_2, DataType::kFloat16, ReduceOp::kSum, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, e4m3_sum_2, DataType::kFloat8e4m3, ReduceOp::kSum, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, e5m2_sum_2, DataType::kFloat8e5m2, ReduceOp::kSum, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, int32_sum_2, DataType::kInt32, ReduceOp::kSum, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, int32_avg_2, DataType::kInt32, ReduceOp::kAvg, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, int8_avg_2, DataType::kInt8, ReduceOp::kAvg, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, int64_avg_2, DataType::kInt64, ReduceOp::kAvg, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, int64_sum_2, DataType::kInt64, ReduceOp::kSum, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, int8_sum_2, DataType::kInt8, ReduceOp::kSum, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, int16_sum_2, DataType::kInt16, ReduceOp::kSum, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, int64_bxor_2, DataType::kInt64, ReduceOp::kBitXor, 2, 1)->Apply(sizes);
BENCHMARK_CAPTURE(combined, bool_max_2, DataType::kBool, ReduceOp::kMax, 2, 1)->Apply(sizes);

}  // namespace
}  // namespace tutti::kernels
