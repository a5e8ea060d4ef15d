// A TCP port for a test that others must know before anybody listens there.
#pragma once
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <fstream>
#include <random>

#include "process/fd.h"

namespace tutti::test {

// Below those that the system gives to whoever asks for none, as every outgoing connection does: between this look and
// the test's listening one of those would be taken sooner or later. 0 where that leaves next to none: then the system
// gives one.
inline uint16_t portBelowTheSystems() {
  constexpr int kFirst = 10240, kEnough = 1000;
  int first = 0;
  if (!(std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first) || first < kFirst + kEnough) return 0;
  std::random_device random;
  return static_cast<uint16_t>(std::uniform_int_distribution(kFirst, first - 1)(random));
}

// A port of this host that nobody listens at. Not from a root of a moment's life: when that has gone nobody can tell.
inline uint16_t freePort() {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(portBelowTheSystems());
    socklen_t length = sizeof any;
    auto* const address = reinterpret_cast<sockaddr*>(&any);
    if (::bind(fd.get(), address, length) == 0 && ::getsockname(fd.get(), address, &length) == 0)
      return ntohs(any.sin6_port);
  }
  ADD_FAILURE() << "no free port";
  return 0;
}

}  // namespace tutti::test
