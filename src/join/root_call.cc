#include "join/root_call.h"

#include "job/root_name.h"
#include "join/root.h"

namespace tutti::control {

std::vector<std::string> ifAllowed(const Network& network, std::vector<std::string> unixNames) {
  if (!network.unixSockets) unixNames.clear();
  return unixNames;
}

Dial::Target targetOfRoot(const JoinRequest& request) {
  HandshakeContext context = rootContext(request.id);
  context.encryption = encryptionOf(request);
  return {context, ifAllowed(request.network, {rootUnixName(request.id.job)}), request.id.addresses, request.id.folder};
}

Hello helloOf(const JoinRequest& request, const RankAddress& self, const Line& root) {
  Hello hello{self, request.size, request.deadline.left().count(), request.heartbeat.count(), request.agreement};
  hello.record = digestOf(encode(Record{self, request.info}));
  if (request.id.beside != Secret{}) hello.mark = root.wrap(markOf(request.id.beside));
  return hello;
}

}  // namespace tutti::control
