// What a driver is told on its command line. All drivers, and the program of the limits, have the same options;
// launchers that number the ranks themselves leave --rank and --ranks out.
#pragma once
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tutti::compare {

struct Arguments {
  std::string cells;               // a file with a line for each (cell.h)
  std::string meeting;             // a file that all ranks map (meeting.h), of zeros at the start
  std::string out;                 // where rank 0 writes a line of JSON for each cell
  std::string mode;                // a variant that a driver knows
  std::vector<int> cpus;           // the processors, of which the first ones share the least
  std::vector<int> counts;         // of ranks; for the limits
  std::string interface = "lo";    // of sockets, for who has no setting for it
  std::vector<std::string> hosts;  // files of two network namespaces; for the limits
  std::string address;             // of the first of them
  int rank = 0, ranks = 0;
  double budget = 0.05;     // seconds of measuring a cell, about
  unsigned deadline = 600;  // seconds, after which the process ends itself
  bool pinned = false;      // rank r stays on cpus[r % size], instead of wherever the system puts it
  bool busy = false;        // a busy thread beside each rank
  bool realTime = false;    // threads that wake others do not wait for their turn (SCHED_RR)
};

inline std::vector<std::string> wordsOf(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) result.push_back(word);
  return result;
}

inline std::vector<int> numbersOf(const std::string& text) {
  std::vector<int> numbers;
  for (const std::string& word : wordsOf(text)) numbers.push_back(std::stoi(word));
  return numbers;
}

inline void take(Arguments& arguments, const std::string& name, const std::string& value) {
  if (name == "--cells")
    arguments.cells = value;
  else if (name == "--meeting")
    arguments.meeting = value;
  else if (name == "--out")
    arguments.out = value;
  else if (name == "--mode")
    arguments.mode = value;
  else if (name == "--cpus")
    arguments.cpus = numbersOf(value);
  else if (name == "--counts")
    arguments.counts = numbersOf(value);
  else if (name == "--interface")
    arguments.interface = value;
  else if (name == "--hosts")
    arguments.hosts = wordsOf(value);
  else if (name == "--address")
    arguments.address = value;
  else if (name == "--rank")
    arguments.rank = std::stoi(value);
  else if (name == "--ranks")
    arguments.ranks = std::stoi(value);
  else if (name == "--budget")
    arguments.budget = std::stod(value);
  else if (name == "--deadline")
    arguments.deadline = static_cast<unsigned>(std::stoul(value));
  else
    throw std::runtime_error("there is no option " + name);
}

inline Arguments parse(int count, char** words) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string name = words[i];
    if (name == "--pinned")
      arguments.pinned = true;
    else if (name == "--busy")
      arguments.busy = true;
    else if (name == "--real-time")
      arguments.realTime = true;
    else if (++i == count)
      throw std::runtime_error(name + " has no value");
    else
      take(arguments, name, words[i]);
  }
  if (arguments.pinned && arguments.cpus.empty()) throw std::runtime_error("--pinned needs the processors (--cpus)");
  return arguments;
}

}  // namespace tutti::compare
