// What happened when, as a trace in Chrome's JSON format: ui.perfetto.dev and chrome://tracing show it. One process a
// rank, with tracks for collectives, sends and receives. Format: "Trace Event Format" (Google, 2016).
#pragma once
#include <string>
#include <vector>

#include "doctor/records.h"

namespace tutti::doctor {

std::string toTrace(const std::vector<Job>& jobs);

}  // namespace tutti::doctor
