// A connected stream socket whose peer has proved the secret, and the keys with which what follows is sealed.
#pragma once
#include <optional>

#include "net/cipher.h"
#include "process/fd.h"

namespace tutti {

struct SecureSocket {
  UniqueFd fd;
  // Set when the job encrypts and the socket leaves the host: every byte must then be sealed with them (net/cipher.h).
  std::optional<SessionKeys> keys;
};

}  // namespace tutti
