// What the two ends of a pair tell the others of it.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "preflight/finding.h"

namespace tutti::doctor::net {

// All but the hosts, which everyone knows.
Bytes encode(const std::vector<preflight::PairResult>& pairs);
std::vector<preflight::PairResult> decodePairs(std::span<const std::byte> bytes);  // throws Error(kRemote)

// Each end has told of the pair: the lower rank has the numbers, and either may say that it does not work.
void merge(const preflight::PairResult& told, std::vector<preflight::PairResult>& pairs);

// Why a link of that transport was not to be had, without what belongs to the message alone: which others were not
// allowed, and which of the library's settings the deadline would be.
std::string shortReason(const std::string& text, const std::string& transport);

}  // namespace tutti::doctor::net
