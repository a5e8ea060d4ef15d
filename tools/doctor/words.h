// How calls, ranks, sizes and times are written, in findings and in the timeline.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/records.h"

namespace tutti::doctor {

// "0, 2-5, 9": at most 16 items, then "and N more". `ranks` is sorted.
std::string listRanks(const std::vector<int>& ranks);
// "rank 1", "ranks 0, 2, 3"
std::string namesOf(const std::vector<int>& ranks);
// "rank 3 (host n2, pid 411)"
std::string nameOf(const Job& job, int rank);
// "all-reduce #17 (float, 1 MiB, sum)", "receive #3 from rank 1 (float, 4 KiB)"
std::string describe(const Call& call);
// "all-reduce #17", "receive #3 from rank 1"
std::string title(const Call& call);
// "1 element", "300 elements"; with a type "300 float elements"
std::string elementsText(uint64_t count, std::string_view type = {});
std::string sizeText(uint64_t bytes);       // "1.5 MiB", "1 byte"
std::string timeText(int64_t nanoseconds);  // "3.2 s", "12 ms", "0.8 us"
// The sentence over as many lines as it takes, none wider than `width` but for words that are; all but the first are
// moved in. Ends in a line break.
std::string wrapped(std::string_view sentence, size_t width);
// `one` for a single rank, `many` else: verbs agree with their subject.
const char* agree(const std::vector<int>& ranks, const char* one, const char* many);

}  // namespace tutti::doctor
