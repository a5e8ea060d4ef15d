// tutti-topo plan: what would be chosen on a system, and why, as a table or as JSON.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "asked.h"
#include "explain/explain.h"

namespace tutti::topo {

struct PlanOptions : tools::Asked {
  std::string algo, protocol, transport = "shm", profile, format = "text";
  int channels = 0;
  bool measure = false;
};

void describePlan(CLI::App& app, PlanOptions& options);

// `atHand`: the system is this machine, where it can be measured. Throws Error(kInvalidArgument) that says what there
// is.
std::string planText(const topology::System& system, const std::string& name, bool atHand, const PlanOptions& options);

}  // namespace tutti::topo
