// The operations of a communicator: each checks that its arrays fit each other, and calls the library.
#include "collectives.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <vector>

#include "errors.h"
#include "operator.h"

namespace nb = nanobind;

namespace tutti::python {
namespace {

using Counts = std::vector<size_t>;
using Config = const tuttiCallConfig_t*;

void require(bool fits, const char* call, const std::string& complaint) {
  if (!fits) raise(tuttiInvalidArgument, std::string(call) + ": " + complaint);
}

void requireSameType(const Array& send, const Array& recv, const char* call) {
  require(send.type == recv.type, call,
          std::string("send is of ") + nameOf(send.type) + ", recv of " + nameOf(recv.type) + ": both have one type");
}

std::string number(size_t value) { return std::to_string(value); }

// Of `whole` elements a part for each rank.
size_t partOf(size_t whole, const Communicator& comm, const char* call, const char* argument) {
  const auto ranks = static_cast<size_t>(comm.size());
  require(whole % ranks == 0, call,
          std::string(argument) + " has " + number(whole) + " elements, which " + number(ranks) +
              " ranks cannot share evenly");
  return whole / ranks;
}

void requireParts(const Array& one, const Array& all, const Communicator& comm, const char* call, const char* oneName,
                  const char* allName) {
  const size_t wanted = one.count * static_cast<size_t>(comm.size());
  require(all.count == wanted, call,
          std::string(allName) + " has " + number(all.count) + " elements: it holds one " + oneName + " a rank, " +
              number(wanted));
}

// The root alone has the array that holds a part a rank; elsewhere it may be None.
Array ofRoot(bool isRoot, nb::handle object, Array (*take)(nb::handle, const char*), const char* name,
             const char* call) {
  if (!isRoot) return {};
  require(!object.is_none(), call, std::string(name) + " is None, and this rank is the root");
  return take(object, name);
}

Counts placesOf(const Counts& counts) {
  Counts places;
  size_t at = 0;
  for (const size_t count : counts) places.push_back(at), at += count;
  return places;
}

// Of counts, an entry a rank, whose parts lie one after the other in the array.
void requireCounts(const Counts& counts, const Array& array, const Communicator& comm, const char* call,
                   const char* name) {
  require(counts.size() == static_cast<size_t>(comm.size()), call,
          std::string(name) + "_counts has " + number(counts.size()) + " entries: one a rank, " +
              number(static_cast<size_t>(comm.size())));
  size_t left = array.count;
  for (const size_t count : counts) {
    require(count <= left, call,
            std::string(name) + "_counts are more than the " + number(array.count) + " elements of " + name);
    left -= count;
  }
  require(left == 0, call,
          std::string(name) + " has " + number(array.count) + " elements, " + name + "_counts are " +
              number(array.count - left) + " in all");
}

nb::object allReduce(Communicator& comm, const CallWish& wish, nb::handle send, nb::handle recv, nb::handle op) {
  const char* call = "all_reduce";
  const Array out = writable(recv.is_none() ? send : recv, recv.is_none() ? "send" : "recv");
  const Array in = recv.is_none() ? out : readable(send, "send");
  requireSameType(in, out, call);
  require(in.count == out.count, call, "send has " + number(in.count) + " elements, recv " + number(out.count));
  const tuttiRedOp_t operation = operatorOf(op);
  return comm.run(call, wish, {&in, &out}, in.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiAllReduceConfig(in.data, out.data, in.count, in.type, operation, native, on, config);
  });
}

nb::object broadcast(Communicator& comm, const CallWish& wish, nb::handle buffer, int root) {
  const Array all = comm.rank() == root ? readable(buffer, "buffer") : writable(buffer, "buffer");
  return comm.run("broadcast", wish, {&all}, all.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiBroadcastConfig(all.data, all.data, all.count, all.type, root, native, on, config);
  });
}

nb::object reduce(Communicator& comm, const CallWish& wish, nb::handle send, nb::handle recv, nb::handle op, int root) {
  const char* call = "reduce";
  const bool isRoot = comm.rank() == root;
  const bool inPlace = isRoot && recv.is_none();
  const Array in = inPlace ? writable(send, "send") : readable(send, "send");
  const Array out = inPlace ? in : ofRoot(isRoot, recv, writable, "recv", call);
  if (isRoot) requireSameType(in, out, call);
  if (isRoot)
    require(in.count == out.count, call, "send has " + number(in.count) + " elements, recv " + number(out.count));
  const tuttiRedOp_t operation = operatorOf(op);
  return comm.run(call, wish, {&in, &out}, in.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiReduceConfig(in.data, out.data, in.count, in.type, operation, root, native, on, config);
  });
}

nb::object allGatherV(Communicator& comm, const CallWish& wish, const Array& in, const Array& out,
                      const Counts& counts) {
  const char* call = "all_gather";
  requireCounts(counts, out, comm, call, "recv");
  require(in.count == counts[static_cast<size_t>(comm.rank())], call,
          "send has " + number(in.count) + " elements, and recv_counts says " +
              number(counts[static_cast<size_t>(comm.rank())]) + " of this rank");
  const Counts places = placesOf(counts);
  return comm.run(call, wish, {&in, &out}, out.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiAllGatherVConfig(in.data, out.data, counts.data(), places.data(), in.type, native, on, config);
  });
}

nb::object allGather(Communicator& comm, const CallWish& wish, nb::handle send, nb::handle recv,
                     const std::optional<Counts>& counts) {
  const char* call = "all_gather";
  const Array in = readable(send, "send"), out = writable(recv, "recv");
  requireSameType(in, out, call);
  if (counts) return allGatherV(comm, wish, in, out, *counts);
  requireParts(in, out, comm, call, "send", "recv");
  return comm.run(call, wish, {&in, &out}, out.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiAllGatherConfig(in.data, out.data, in.count, in.type, native, on, config);
  });
}

nb::object reduceScatterV(Communicator& comm, const CallWish& wish, const Array& in, const Array& out,
                          const Counts& counts, tuttiRedOp_t op) {
  const char* call = "reduce_scatter";
  requireCounts(counts, in, comm, call, "send");
  require(out.count == counts[static_cast<size_t>(comm.rank())], call,
          "recv has " + number(out.count) + " elements, and send_counts says " +
              number(counts[static_cast<size_t>(comm.rank())]) + " of this rank");
  return comm.run(call, wish, {&in, &out}, in.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiReduceScatterVConfig(in.data, out.data, counts.data(), in.type, op, native, on, config);
  });
}

nb::object reduceScatter(Communicator& comm, const CallWish& wish, nb::handle send, nb::handle recv, nb::handle op,
                         const std::optional<Counts>& counts) {
  const char* call = "reduce_scatter";
  const Array in = readable(send, "send"), out = writable(recv, "recv");
  requireSameType(in, out, call);
  const tuttiRedOp_t operation = operatorOf(op);
  if (counts) return reduceScatterV(comm, wish, in, out, *counts, operation);
  requireParts(out, in, comm, call, "recv", "send");
  return comm.run(call, wish, {&in, &out}, in.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiReduceScatterConfig(in.data, out.data, out.count, in.type, operation, native, on, config);
  });
}

nb::object gather(Communicator& comm, const CallWish& wish, nb::handle send, nb::handle recv, int root,
                  const std::optional<Counts>& counts) {
  const char* call = "gather";
  const bool isRoot = comm.rank() == root;
  const Array in = readable(send, "send"), out = ofRoot(isRoot, recv, writable, "recv", call);
  if (isRoot) requireSameType(in, out, call);
  if (counts) {
    if (isRoot) requireCounts(*counts, out, comm, call, "recv");
    const Counts places = placesOf(*counts);
    return comm.run(call, wish, {&in, &out}, in.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
      return tuttiGatherVConfig(in.data, in.count, out.data, counts->data(), places.data(), in.type, root, native, on,
                                config);
    });
  }
  if (isRoot) requireParts(in, out, comm, call, "send", "recv");
  return comm.run(call, wish, {&in, &out}, in.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiGatherConfig(in.data, out.data, in.count, in.type, root, native, on, config);
  });
}

nb::object scatter(Communicator& comm, const CallWish& wish, nb::handle send, nb::handle recv, int root,
                   const std::optional<Counts>& counts) {
  const char* call = "scatter";
  const bool isRoot = comm.rank() == root;
  const Array in = ofRoot(isRoot, send, readable, "send", call), out = writable(recv, "recv");
  if (isRoot) requireSameType(in, out, call);
  if (counts) {
    if (isRoot) requireCounts(*counts, in, comm, call, "send");
    const Counts places = placesOf(*counts);
    return comm.run(call, wish, {&in, &out}, out.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
      return tuttiScatterVConfig(in.data, counts->data(), places.data(), out.data, out.count, out.type, root, native,
                                 on, config);
    });
  }
  if (isRoot) requireParts(out, in, comm, call, "recv", "send");
  return comm.run(call, wish, {&in, &out}, out.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiScatterConfig(in.data, out.data, out.count, out.type, root, native, on, config);
  });
}

nb::object allToAllV(Communicator& comm, const CallWish& wish, const Array& in, const Array& out, const Counts& sent,
                     const Counts& expected) {
  const char* call = "all_to_all";
  requireCounts(sent, in, comm, call, "send");
  requireCounts(expected, out, comm, call, "recv");
  const Counts from = placesOf(sent), to = placesOf(expected);
  return comm.run(call, wish, {&in, &out}, in.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiAllToAllVConfig(in.data, sent.data(), from.data(), out.data, expected.data(), to.data(), in.type,
                                native, on, config);
  });
}

nb::object allToAll(Communicator& comm, const CallWish& wish, nb::handle send, nb::handle recv,
                    const std::optional<Counts>& sent, const std::optional<Counts>& expected) {
  const char* call = "all_to_all";
  const Array out = writable(recv.is_none() ? send : recv, recv.is_none() ? "send" : "recv");
  const Array in = recv.is_none() ? out : readable(send, "send");
  requireSameType(in, out, call);
  require(sent.has_value() == expected.has_value(), call, "send_counts and recv_counts are given both, or neither");
  if (sent) return allToAllV(comm, wish, in, out, *sent, *expected);
  require(in.count == out.count, call, "send has " + number(in.count) + " elements, recv " + number(out.count));
  const size_t part = partOf(in.count, comm, call, "send");
  return comm.run(call, wish, {&in, &out}, in.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiAllToAllConfig(in.data, out.data, part, in.type, native, on, config);
  });
}

nb::object send(Communicator& comm, const CallWish& wish, nb::handle buffer, int peer) {
  const Array in = readable(buffer, "buffer");
  return comm.run("send", wish, {&in}, in.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiSendConfig(in.data, in.count, in.type, peer, native, on, config);
  });
}

nb::object receive(Communicator& comm, const CallWish& wish, nb::handle buffer, int peer) {
  const Array out = writable(buffer, "buffer");
  return comm.run("recv", wish, {&out}, out.bytes(), [&, native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiRecvConfig(out.data, out.count, out.type, peer, native, on, config);
  });
}

nb::object barrier(Communicator& comm, const CallWish& wish) {
  return comm.run("barrier", wish, {}, 0, [native = comm.native()](tuttiStream_t on, Config config) {
    return tuttiBarrierConfig(native, on, config);
  });
}

// The five keyword arguments that every operation takes, behind its own.
template <class... Own, class... Extra>
void define(nb::class_<Communicator>& type, const char* name, nb::object (*run)(Communicator&, const CallWish&, Own...),
            const char* doc, const Extra&... extra) {
  type.def(
      name,
      [run](Communicator& comm, Own... own, bool async, std::optional<std::string> algorithm, int channels,
            bool reproducible, uint64_t tag) {
        return run(comm, CallWish{async, reproducible, channels, std::move(algorithm), tag}, own...);
      },
      doc, extra..., nb::kw_only(), nb::arg("async_op") = false, nb::arg("algorithm") = nb::none(),
      nb::arg("channels") = 0, nb::arg("reproducible") = false, nb::arg("tag") = 0);
}

}  // namespace

void defineCollectives(nb::class_<Communicator>& type) {
  const auto none = nb::none();
  define(type, "all_reduce", allReduce,
         "recv[i] = op over all ranks of send[i], on every rank. Without recv in place, in send.", nb::arg("send"),
         nb::arg("recv").none() = none, nb::arg("op") = "sum");
  define(type, "broadcast", broadcast, "The root's buffer into everybody's. The root's may be read-only.",
         nb::arg("buffer"), nb::arg("root") = 0);
  define(type, "reduce", reduce,
         "As all_reduce, at the root only: elsewhere recv is not looked at, and send only read. Without recv at the "
         "root in "
         "place.",
         nb::arg("send"), nb::arg("recv").none() = none, nb::arg("op") = "sum", nb::arg("root") = 0);
  define(type, "all_gather", allGather,
         "recv holds the send of every rank, in the order of ranks. With recv_counts, the same on all ranks, each rank "
         "has a "
         "size of its own.",
         nb::arg("send"), nb::arg("recv"), nb::arg("recv_counts").none() = none);
  define(type, "reduce_scatter", reduceScatter,
         "recv[i] = op over all ranks of send[rank * len(recv) + i]. With send_counts, the same on all ranks, each "
         "rank has a "
         "size of its own.",
         nb::arg("send"), nb::arg("recv"), nb::arg("op") = "sum", nb::arg("send_counts").none() = none);
  define(
      type, "gather", gather,
      "As all_gather, at the root only: elsewhere recv is not looked at. recv_counts, where sizes differ, is given on "
      "every rank, and read at the root.",
      nb::arg("send"), nb::arg("recv").none() = none, nb::arg("root") = 0, nb::arg("recv_counts").none() = none);
  define(type, "scatter", scatter,
         "recv[i] = the root's send[rank * len(recv) + i]; elsewhere send is not looked at. send_counts, where sizes "
         "differ, "
         "is given on every rank, and read at the root.",
         nb::arg("send").none(), nb::arg("recv"), nb::arg("root") = 0, nb::arg("send_counts").none() = none);
  define(type, "all_to_all", allToAll,
         "The r-th part of send goes to rank r, and recv gets the parts in the order of ranks. Without recv in place. "
         "With "
         "both counts, an entry a rank, parts differ in size.",
         nb::arg("send"), nb::arg("recv").none() = none, nb::arg("send_counts").none() = none,
         nb::arg("recv_counts").none() = none);
  define(type, "send", send, "A message to another rank, which receives as many elements of the same type.",
         nb::arg("buffer"), nb::arg("peer"));
  define(type, "recv", receive, "A message from another rank.", nb::arg("buffer"), nb::arg("peer"));
  define(type, "barrier", barrier, "Ends when every rank has called it.");
}

}  // namespace tutti::python
