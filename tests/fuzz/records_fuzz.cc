// Records of ranks, several in one input with a zero byte between them: each is read or refused, and whatever was read
// can be diagnosed and drawn.
#include "doctor/diagnose.h"
#include "doctor/records.h"
#include "doctor/timeline.h"
#include "doctor/trace.h"
#include "fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti::doctor;
  const std::string text = tutti::fuzz::Input(data, size).text();
  std::vector<Record> records;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    try {
      records.push_back(parseRecord("a file", std::string_view(text).substr(at, end - at)));
    } catch (const BadRecord&) {
    }
    at = end + 1;
  }
  try {
    const std::vector<Job> jobs = groupRecords(std::move(records));
    for (const Job& job : jobs) {
      const Diagnosis diagnosis = diagnose(job);
      tutti::fuzz::require(!diagnosis.findings.empty() && !diagnosis.findings.front().text.empty());
      tutti::fuzz::require(!timeline(job, diagnosis.findings.front().blamed, {}).empty());
    }
    tutti::fuzz::require(!toTrace(jobs).empty());
  } catch (const BadRecord&) {
  }
  return 0;
}
