// The handwritten digits and a small network to tell them apart; nothing here knows about other processes.
#pragma once
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace digits {

inline constexpr int kPixels = 64, kHidden = 64, kClasses = 10;

struct Sample {
  std::array<double, kPixels> pixels{};  // 0 to 1
  int label = 0;
};

struct Data {
  std::vector<Sample> train, test;
};

inline Sample parseSample(const std::string& line) {
  Sample sample;
  std::istringstream text(line);
  char comma = 0;
  for (double& pixel : sample.pixels) {
    text >> pixel >> comma;
    pixel /= 16;
  }
  if (!(text >> sample.label) || sample.label < 0 || sample.label >= kClasses) {
    throw std::runtime_error("not 64 pixels and a digit: " + line.substr(0, std::min<size_t>(line.find('\n'), 60)));
  }
  return sample;
}

// Every fifth sample is for the test.
inline Data load(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) throw std::runtime_error("cannot read " + path + "; name the file with --data");
  Data data;
  char line[1024];
  for (int i = 0; gzgets(file.get(), line, sizeof line) != nullptr; ++i) {
    try {
      (i % 5 == 4 ? data.test : data.train).push_back(parseSample(line));
    } catch (const std::exception& error) {
      throw std::runtime_error(path + ", line " + std::to_string(i + 1) + ": " + error.what());
    }
  }
  if (data.train.empty() || data.test.empty()) throw std::runtime_error(path + " has no samples");
  return data;
}

// One hidden layer. All parameters lie in one array, so that one call can move them, and so do their gradients.
// double, because the sum over the ranks comes in another order than the sum of one process: the difference, some 1e-16
// a step, then stays invisible over the whole training.
using Parameters = std::vector<double>;
inline constexpr size_t kHiddenWeights = 0, kHiddenBias = kHiddenWeights + kPixels * kHidden,
                        kOutWeights = kHiddenBias + kHidden, kOutBias = kOutWeights + kHidden * kClasses,
                        kParameters = kOutBias + kClasses;

inline Parameters randomParameters(uint32_t seed) {
  std::mt19937 random(seed);
  Parameters parameters(kParameters);  // biases start at 0
  const auto fill = [&](size_t begin, size_t end, int inputs) {
    std::normal_distribution<double> normal(0, std::sqrt(2.0 / inputs));
    for (size_t i = begin; i < end; ++i) parameters[i] = normal(random);
  };
  fill(kHiddenWeights, kHiddenBias, kPixels);
  fill(kOutWeights, kOutBias, kHidden);
  return parameters;
}

struct Activations {
  std::array<double, kHidden> hidden{};
  std::array<double, kClasses> probability{};
};

inline Activations forward(const Parameters& p, const Sample& sample) {
  Activations a;
  for (int h = 0; h < kHidden; ++h) {
    double sum = p[kHiddenBias + h];
    for (int i = 0; i < kPixels; ++i) sum += p[kHiddenWeights + h * kPixels + i] * sample.pixels[i];
    a.hidden[h] = std::max(0.0, sum);
  }
  double total = 0;
  for (int c = 0; c < kClasses; ++c) {
    double sum = p[kOutBias + c];
    for (int h = 0; h < kHidden; ++h) sum += p[kOutWeights + c * kHidden + h] * a.hidden[h];
    total += a.probability[c] = std::exp(std::min(sum, 500.0));
  }
  for (double& probability : a.probability) probability /= total;
  return a;
}

// Adds the sample's gradient to `gradient` and returns its loss (cross entropy).
inline double backward(const Parameters& p, const Sample& sample, double* gradient) {
  const Activations a = forward(p, sample);
  std::array<double, kHidden> toHidden{};
  for (int c = 0; c < kClasses; ++c) {
    const double error = a.probability[c] - (c == sample.label);
    gradient[kOutBias + c] += error;
    for (int h = 0; h < kHidden; ++h) {
      gradient[kOutWeights + c * kHidden + h] += error * a.hidden[h];
      toHidden[h] += error * p[kOutWeights + c * kHidden + h];
    }
  }
  for (int h = 0; h < kHidden; ++h) {
    if (a.hidden[h] <= 0) continue;
    gradient[kHiddenBias + h] += toHidden[h];
    for (int i = 0; i < kPixels; ++i) gradient[kHiddenWeights + h * kPixels + i] += toHidden[h] * sample.pixels[i];
  }
  return -std::log(std::max(a.probability[sample.label], 1e-300));
}

inline bool recognises(const Parameters& p, const Sample& sample) {
  const Activations a = forward(p, sample);
  int best = 0;
  for (int c = 1; c < kClasses; ++c) best = a.probability[c] > a.probability[best] ? c : best;
  return best == sample.label;
}

}  // namespace digits
