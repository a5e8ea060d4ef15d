// Loaded into a program (LD_PRELOAD), it sends every TCP connection to a port from REDIRECT_FIRST to REDIRECT_LAST to
// the port REDIRECT_BY above it instead, where a man in the middle listens.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int number(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? 0 : atoi(text);
}

__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr* to, socklen_t bytes) {
  int (*real)(int, const struct sockaddr*, socklen_t) = NULL;
  *(void**)&real = dlsym(RTLD_NEXT, "connect");
  struct sockaddr_storage bent;
  memset(&bent, 0, sizeof bent);
  memcpy(&bent, to, bytes < sizeof bent ? bytes : sizeof bent);
  // The port stands at the same place in both families' addresses.
  struct sockaddr_in* address = (struct sockaddr_in*)&bent;
  const int port = ntohs(address->sin_port);
  if ((to->sa_family == AF_INET || to->sa_family == AF_INET6) && port >= number("REDIRECT_FIRST") &&
      port <= number("REDIRECT_LAST"))
    address->sin_port = htons((uint16_t)(port + number("REDIRECT_BY")));
  return real(fd, (const struct sockaddr*)&bent, bytes);
}
