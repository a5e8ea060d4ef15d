// Trains a network on handwritten digits, data-parallel: every process has all parameters, works on its share of each
// batch, and the gradients are added up over all processes. The losses are those of one process, to rounding.
//
//   02_digits --ranks 4      starts four processes on this machine
//   mpirun -n 4 02_digits    or let a launcher start them
#include "launch.h"  // --ranks: not part of the library

#include <cstdio>
#include <exception>
#include <numeric>
#include <optional>
#include <span>

#include "digits.h"
#include "tutti/tutti.hpp"

#ifndef DIGITS_FILE
#define DIGITS_FILE "data/digits.csv.gz"
#endif

namespace {

constexpr size_t kBatch = 50;
constexpr double kRate = 0.1, kMomentum = 0.9;
constexpr uint32_t kSeed = 1;

struct Options {
  int epochs = 20;
  bool steps = false;  // print the loss of every step
  std::string data = DIGITS_FILE;
};

// This rank's part of `count` things: the parts of all ranks are the whole, whatever the count.
struct Share {
  size_t begin, end;
};
Share shareOf(const tutti::Communicator& comm, size_t count) {
  const size_t rank = static_cast<size_t>(comm.rank()), size = static_cast<size_t>(comm.size());
  return {count * rank / size, count * (rank + 1) / size};
}

// The network, its optimiser and the buffer that goes through the all-reduce: the gradients, and behind them the loss.
class Trainer {
 public:
  explicit Trainer(tutti::Communicator& comm) : comm_(comm), velocity_(digits::kParameters) {
    parameters_ = comm.rank() == 0 ? digits::randomParameters(kSeed) : digits::Parameters(digits::kParameters);
    comm_.broadcast<double>(parameters_, 0);
  }

  // One batch, given as indices into `samples`; returns the mean loss over the batch before the step.
  double step(const std::vector<digits::Sample>& samples, std::span<const size_t> batch, double rate) {
    sums_.assign(digits::kParameters + 1, 0);
    const Share share = shareOf(comm_, batch.size());
    for (size_t i = share.begin; i < share.end; ++i) {
      sums_[digits::kParameters] += digits::backward(parameters_, samples[batch[i]], sums_.data());
    }
    // Shares may differ by a sample. Adding sums and dividing by the whole batch weighs every sample alike; an average
    // of the ranks' averages would not.
    comm_.allReduce<double>(sums_);
    for (double& sum : sums_) sum /= static_cast<double>(batch.size());
    for (size_t i = 0; i < digits::kParameters; ++i) {
      velocity_[i] = kMomentum * velocity_[i] - rate * sums_[i];
      parameters_[i] += velocity_[i];
    }
    return sums_[digits::kParameters];
  }

  // Each rank tries its share of the samples.
  int64_t countRecognised(const std::vector<digits::Sample>& samples) {
    const Share share = shareOf(comm_, samples.size());
    int64_t count = 0;
    for (size_t i = share.begin; i < share.end; ++i) count += digits::recognises(parameters_, samples[i]);
    comm_.allReduce<int64_t>(std::span(&count, 1));
    return count;
  }

 private:
  tutti::Communicator& comm_;
  digits::Parameters parameters_, velocity_;
  std::vector<double> sums_;
};

// Every rank shuffles alike, so all know which samples a batch has.
void shuffle(std::vector<size_t>& order, std::mt19937& random) {
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
}

double runEpoch(Trainer& trainer, const std::vector<digits::Sample>& samples, std::span<const size_t> order,
                double rate, bool printSteps) {
  double total = 0;
  for (size_t begin = 0; begin < order.size(); begin += kBatch) {
    const auto batch = order.subspan(begin, std::min(kBatch, order.size() - begin));
    const double loss = trainer.step(samples, batch, rate);
    if (printSteps) std::printf("step loss %.12g\n", loss);
    total += loss * static_cast<double>(batch.size());
  }
  return total / static_cast<double>(order.size());
}

void train(const Options& options) {
  tutti::Communicator comm = tutti::Communicator::fromEnvironment();
  const digits::Data data = digits::load(options.data);
  const bool speaks = comm.rank() == 0;
  if (speaks) {
    std::printf("%zu digits to learn, %zu to test, %d ranks, batches of %zu\n", data.train.size(), data.test.size(),
                comm.size(), kBatch);
  }

  Trainer trainer(comm);
  std::mt19937 random(kSeed);
  std::vector<size_t> order(data.train.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    shuffle(order, random);
    const double rate = kRate * (options.epochs - epoch + 1) / options.epochs;  // ever smaller steps
    const double loss = runEpoch(trainer, data.train, order, rate, speaks && options.steps);
    const double right = static_cast<double>(trainer.countRecognised(data.test));
    if (!speaks) continue;
    std::printf("epoch %2d  loss %.6f  test accuracy %.2f %%\n", epoch, loss,
                100 * right / static_cast<double>(data.test.size()));
    std::fflush(stdout);
  }
  comm.destroy();
}

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool hasValue = i + 1 < argc;
    if (name == "--steps")
      options.steps = true;
    else if (name == "--data" && hasValue)
      options.data = argv[++i];
    else if (name == "--epochs" && hasValue)
      options.epochs = std::atoi(argv[++i]);
    else
      return std::nullopt;
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  int status = 0;
  if (launchRanks(argc, argv, &status)) return status;
  const std::optional<Options> options = parse(argc, argv);
  if (!options) {
    std::fprintf(stderr, "usage: %s [--ranks N] [--epochs N] [--steps] [--data FILE]\n", argv[0]);
    return 2;
  }
  try {
    train(*options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
