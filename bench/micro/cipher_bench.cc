// What sealing and opening a record costs, by its size: a slot's head (64 bytes), a control message, a full slot.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/random.h"
#include "net/cipher.h"

namespace tutti {
namespace {

constexpr auto kAes = CipherKind::kAes256Gcm, kChaCha = CipherKind::kXChaCha20Poly1305;

CipherKey someKey() {
  CipherKey key;
  fillRandom(key.data(), key.size());
  return key;
}

bool lacks(benchmark::State& state, CipherKind kind) {
  if (kind == kChaCha || hasAes256Gcm()) return false;
  state.SkipWithError("this processor has no AES");
  return true;
}

void seal(benchmark::State& state, CipherKind kind) {
  if (lacks(state, kind)) return;
  Cipher cipher(kind, someKey());
  std::vector<std::byte> clear(size_t(state.range(0))), sealed(clear.size() + Cipher::kTagBytes);
  for (auto _ : state) {
    benchmark::DoNotOptimize(cipher.seal(sealed.data(), sealed.data() + clear.size(), clear.data(), clear.size()));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// In place, as a receiver opens. What it opens was sealed outside the measured time, some records at a time.
void open(benchmark::State& state, CipherKind kind) {
  if (lacks(state, kind)) return;
  constexpr size_t kRecords = 64;
  const CipherKey key = someKey();
  Cipher out(kind, key), in(kind, key);
  const size_t bytes = size_t(state.range(0)), stride = bytes + Cipher::kTagBytes;
  std::vector<std::byte> wire(kRecords * stride);
  size_t next = kRecords;
  for (auto _ : state) {
    if (next == kRecords) {
      state.PauseTiming();
      for (next = 0; next < kRecords; ++next) {
        std::byte* record = wire.data() + next * stride;
        benchmark::DoNotOptimize(out.seal(record, record + bytes, record, bytes));
      }
      next = 0;
      state.ResumeTiming();
    }
    std::byte* record = wire.data() + next++ * stride;
    if (!in.open(record, record, bytes, record + bytes)) return state.SkipWithError("a record did not open");
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

BENCHMARK_CAPTURE(seal, aes, kAes)->Arg(64)->Arg(1024)->Arg(64 << 10);
BENCHMARK_CAPTURE(open, aes, kAes)->Arg(64)->Arg(1024)->Arg(64 << 10);
BENCHMARK_CAPTURE(seal, chacha, kChaCha)->Arg(64)->Arg(1024)->Arg(64 << 10);
BENCHMARK_CAPTURE(open, chacha, kChaCha)->Arg(64)->Arg(1024)->Arg(64 << 10);

}  // namespace
}  // namespace tutti
