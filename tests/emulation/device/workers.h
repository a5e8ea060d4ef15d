// Threads of the process that run what they are given, and wait for more when it is done. As many as are needed at
// once: a task may wait for any other one.
#pragma once
#include <functional>

namespace tutti::emulation {

void runOnWorker(std::function<void()> task);

}  // namespace tutti::emulation
