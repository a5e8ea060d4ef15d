// What this rank says when another one asks where it is.
#pragma once
#include <memory>

#include "team/recorder.h"
#include "wire/join_request.h"

namespace tutti::comm {

// For JoinRequest::respond: it owns the recorder.
control::Respond respondFrom(std::shared_ptr<const Recorder> recorder);

}  // namespace tutti::comm
