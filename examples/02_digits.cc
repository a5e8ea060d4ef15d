// Trains a network on handwritten digits, data-parallel: every process has all parameters, works on its share of each
// batch, and the gradients are added up over all processes. The losses are those of one process, to rounding.
//
//   02_digits --ranks 4      starts four processes on this machine
//   mpirun -n 4 02_digits    or let a launcher start them
#include "launch.h"  // --ranks: not part of the library

#include <charconv>
#include <cstdio>
#include <exception>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

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

// Each rank reads a file of its own host, so what is wrong with one is told with the rank.
digits::Data loadOn(int rank, const std::string& path) {
  try {
    return digits::load(path);
  } catch (const std::exception& error) {
    throw std::runtime_error("rank " + std::to_string(rank) + ": " + error.what());
  }
}

void train(const Options& options) {
  tutti::Communicator comm = tutti::Communicator::fromEnvironment();
  const digits::Data data = loadOn(comm.rank(), options.data);
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

constexpr char kUsage[] = "[--epochs N] [--steps] [--data FILE]";

int epochsOf(const std::string& text) {
  int epochs = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, epochs);
  if (failure != std::errc() || stop != end || epochs < 1)
    throw std::invalid_argument("--epochs takes a whole number from 1 on, not '" + text + "';");
  return epochs;
}

// Throws std::invalid_argument where an argument is not understood.
Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool takesValue = name == "--data" || name == "--epochs";
    if (takesValue && i + 1 == argc) throw std::invalid_argument(name + " needs a value;");
    if (name == "--steps")
      options.steps = true;
    else if (name == "--ranks")
      ++i;  // launchRanks reads it
    else if (name == "--data")
      options.data = argv[++i];
    else if (name == "--epochs")
      options.epochs = epochsOf(argv[++i]);
    else
      throw std::invalid_argument("what is " + name + "?");
  }
  return options;
}

// Nothing, and why on stderr, when an argument is not understood.
std::optional<Options> parseOrComplain(int argc, char** argv) {
  try {
    return parse(argc, argv);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s: %s usage: %s [--ranks N] %s\n", argv[0], error.what(), argv[0], kUsage);
    return std::nullopt;
  }
}

}  // namespace

int main(int argc, char** argv) {
  int status = 0;
  if (launchAnswers(argc, argv, kUsage, &status)) return status;
  const std::optional<Options> options = parseOrComplain(argc, argv);
  if (!options) return 2;
  if (launchRanks(argc, argv, &status)) return status;
  try {
    train(*options);
    return launchFinish(argv[0]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
