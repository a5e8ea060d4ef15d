// The module tutti._core.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <string>
#include <vector>

#include "collectives.h"
#include "errors.h"
#include "operator.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tutti::python {
namespace {

using Made = std::unique_ptr<Communicator>;

// Begins to make a communicator: that it goes on in the background is no error.
template <class Begin>
tuttiComm_t begun(tuttiComm_t parent, Begin begin) {
  tuttiComm_t made = nullptr;
  tuttiResult_t result = tuttiSuccess;
  std::string text;
  {
    const nb::gil_scoped_release released;
    result = begin(&made);
    if (result != tuttiSuccess && result != tuttiInProgress) text = textOf(result, parent);
  }
  if (result != tuttiSuccess && result != tuttiInProgress) raise(result, text);
  return made;
}

tuttiUniqueId idOf(const nb::bytes& bytes) {
  tuttiUniqueId id;
  if (bytes.size() != sizeof id.internal)
    raise(tuttiInvalidArgument, "the unique id has " + std::to_string(bytes.size()) +
                                    " bytes: it is what unique_id() gave, " + std::to_string(sizeof id.internal));
  std::memcpy(id.internal, bytes.c_str(), sizeof id.internal);
  return id;
}

nb::bytes bytesOf(const tuttiUniqueId& id) { return nb::bytes(id.internal, sizeof id.internal); }

nb::bytes uniqueId() {
  tuttiUniqueId id;
  check(tuttiGetUniqueId(&id));
  return bytesOf(id);
}

Made fromEnvironment(const nb::kwargs& given) {
  const Settings settings(given);
  return Communicator::adopt(
      begun(nullptr, [&](tuttiComm_t* comm) { return tuttiCommInitEnv(comm, settings.native()); }));
}

Made join(int size, const nb::bytes& id, int rank, const nb::kwargs& given) {
  const Settings settings(given);
  const tuttiUniqueId where = idOf(id);
  return Communicator::adopt(begun(
      nullptr, [&](tuttiComm_t* comm) { return tuttiCommInitRankConfig(comm, size, where, rank, settings.native()); }));
}

Made joinGrowing(int size, const nb::bytes& id, int rank, const nb::kwargs& given) {
  const Settings settings(given);
  const tuttiUniqueId where = idOf(id);
  return Communicator::adopt(begun(
      nullptr, [&](tuttiComm_t* comm) { return tuttiCommGrow(nullptr, size, &where, rank, comm, settings.native()); }));
}

Made split(Communicator& parent, std::optional<int> color, int key, const nb::kwargs& given) {
  const Settings settings(given);
  if (color && *color < 0)
    raise(tuttiInvalidArgument, "color is " + std::to_string(*color) + ": it is 0 or more, or None");
  const tuttiComm_t comm = parent.native();
  const int chosen = color.value_or(TUTTI_SPLIT_NOCOLOR);
  return Communicator::adopt(
      begun(comm, [&](tuttiComm_t* child) { return tuttiCommSplit(comm, chosen, key, child, settings.native()); }),
      comm);
}

Made splitByHost(Communicator& parent, int key, const nb::kwargs& given) {
  const Settings settings(given);
  const tuttiComm_t comm = parent.native();
  return Communicator::adopt(begun(
      comm, [&](tuttiComm_t* child) { return tuttiCommSplit(comm, TUTTI_SPLIT_HOST, key, child, settings.native()); }));
}

Made duplicate(Communicator& parent, const nb::kwargs& given) {
  const Settings settings(given);
  const tuttiComm_t comm = parent.native();
  return Communicator::adopt(
      begun(comm, [&](tuttiComm_t* child) { return tuttiCommDuplicate(comm, child, settings.native()); }));
}

Made shrink(Communicator& parent, const std::vector<int>& leftOut, const nb::kwargs& given) {
  const Settings settings(given);
  const tuttiComm_t comm = parent.native();
  return Communicator::adopt(begun(comm, [&](tuttiComm_t* child) {
    return tuttiCommShrink(comm, leftOut.data(), static_cast<int>(leftOut.size()), child, settings.native(), 0);
  }));
}

Made grow(Communicator& parent, int size, const std::optional<nb::bytes>& id, const nb::kwargs& given) {
  const Settings settings(given);
  const tuttiComm_t comm = parent.native();
  const tuttiUniqueId where = id ? idOf(*id) : tuttiUniqueId{};
  return Communicator::adopt(begun(comm, [&](tuttiComm_t* child) {
    return tuttiCommGrow(comm, size, id ? &where : nullptr, -1, child, settings.native());
  }));
}

nb::bytes uniqueIdToGrow(Communicator& comm) {
  tuttiUniqueId id;
  check(tuttiCommGetUniqueId(comm.native(), &id), comm.native());
  return bytesOf(id);
}

std::string explain(Communicator& comm, const std::string& collective, size_t count, nb::handle dtype) {
  std::string text(16384, '\0');
  check(tuttiCommExplain(comm.native(), collective.c_str(), count, typeNamed(dtype), text.data(), text.size()),
        comm.native());
  return text.c_str();
}

nb::object explainJson(Communicator& comm, const std::string& collective, size_t count, nb::handle dtype) {
  const tuttiDataType_t type = typeNamed(dtype);
  size_t length = 0;
  check(tuttiCommExplainJson(comm.native(), collective.c_str(), count, type, nullptr, 0, &length), comm.native());
  // A link that is made meanwhile may change a word.
  constexpr size_t kMore = 4096;
  std::string text(length + kMore, '\0');
  check(tuttiCommExplainJson(comm.native(), collective.c_str(), count, type, text.data(), text.size(), &length),
        comm.native());
  return nb::module_::import_("json").attr("loads")(text.c_str());
}

nb::dict launch() {
  tuttiLaunch_t told = {};
  told.size = sizeof told;
  check(tuttiGetLaunch(&told));
  nb::dict all;
  all["rank"] = told.rank, all["size"] = told.ranks;
  all["local_rank"] = told.localRank, all["local_size"] = told.localRanks;
  all["one_host"] = told.oneHost != 0;
  all["root_host"] = told.rootHost, all["root_port"] = told.rootPort;
  all["launcher"] = told.launcher, all["source"] = told.source, all["job"] = told.job;
  return all;
}

std::string version() {
  int code = 0;
  check(tuttiGetVersion(&code));
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." + std::to_string(code % 100);
}

void dump(Communicator& comm, const std::string& path) {
  check(tuttiCommDump(comm.native(), path.c_str()), comm.native());
}

void exit(Communicator& comm, nb::handle type, nb::handle, nb::handle) {
  type.is_none() ? comm.destroy() : comm.abort();
}

void defineMaking(nb::class_<Communicator>& type) {
  type.def_static("from_environment", fromEnvironment, "settings"_a,
                  "Joins as what the launcher's environment says: mpirun, torchrun, srun, python -m tutti.run, ...")
      .def_static("join", join, "size"_a, "id"_a, "rank"_a, "settings"_a, "Joins as `rank` of `size` with a unique id.")
      .def_static("join_growing", joinGrowing, "size"_a, "id"_a, "rank"_a, "settings"_a,
                  "Joins a communicator whose ranks call grow().")
      .def("split", split, "color"_a.none(), "key"_a = 0, "settings"_a,
           "Of the ranks with the same color, ordered by key, then rank. None as the color: None comes back.")
      .def("split_by_host", splitByHost, "key"_a = 0, "settings"_a, "Of the ranks of this one's host.")
      .def("duplicate", duplicate, "settings"_a, "Of all ranks once more, with links of its own.")
      .def("shrink", shrink, "left_out"_a = nb::list(), "settings"_a,
           "The survivors' way on after RemoteError; left_out: ranks that stay behind though alive.")
      .def("grow", grow, "size"_a, "id"_a.none() = nb::none(), "settings"_a,
           "Of these ranks and others that join_growing(). One rank brings the id of unique_id_to_grow().")
      .def("unique_id_to_grow", uniqueIdToGrow, "An id for one grow().");
}

void defineRest(nb::class_<Communicator>& type) {
  type.def_prop_ro("rank", &Communicator::rank, "The number of this rank, from 0 on.")
      .def_prop_ro("size", &Communicator::size, "How many ranks there are.")
      .def_prop_ro("is_open", &Communicator::isOpen, "Whether it has neither been destroyed nor aborted.")
      .def_prop_ro(
          "error",
          [](Communicator& comm) {
            const tuttiResult_t state = comm.asyncError();
            return state == tuttiSuccess ? nb::object(nb::none()) : nb::cast(textOf(state, comm.native()));
          },
          "What has stopped the communicator, in words; None while it works. Any thread.")
      .def(
          "premulsum",
          [](Communicator& comm, nb::handle factor, nb::handle dtype) {
            return new Operator(comm, factor, typeNamed(dtype));
          },
          "factor"_a, "dtype"_a, nb::keep_alive<0, 1>(),
          "An operator: this rank's input times factor, added. The dtype has to hold the factor.")
      .def("explain", explain, "collective"_a, "count"_a, "dtype"_a = "float32",
           "How a collective of so many elements would run, and why: what was chosen, what comes next, what was left "
           "out.")
      .def("explain_json", explainJson, "collective"_a, "count"_a, "dtype"_a = "float32",
           "The same as a dict, with the keys of docs/json.md.")
      .def("dump", dump, "path"_a, "Writes this rank's record for tutti-doctor. Any thread.")
      .def("stats", &Communicator::stats, "What was done and is used, as a dict of floats. Any thread.")
      .def(
          "revoke", [](Communicator& comm) { check(tuttiCommRevoke(comm.native(), 0), comm.native()); },
          "Stops the work on all ranks; the communicator lives on for shrink(). Any thread.")
      .def("abort", &Communicator::abort, "Gives everything up at once, on all ranks. Any thread.")
      .def("destroy", &Communicator::destroy, "Waits for what is under way, and leaves in good order.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", exit, "type"_a.none(), "value"_a.none(), "traceback"_a.none());
}

}  // namespace
}  // namespace tutti::python

NB_MODULE(_core, module) {
  using namespace tutti::python;
  nb::set_leak_warnings(false);  // at the interpreter's end the library says goodbye by itself
  module.doc() = "tutti's C interface for Python; use the package tutti.";
  nb::class_<Operation>(module, "Request", "An operation that goes on in the background. It keeps its buffers.")
      .def("test", &Operation::test, "Whether it has ended. Raises its error.")
      .def("wait", &Operation::wait, nb::arg("timeout").none() = nb::none(),
           "Until it has ended; raises its error, or Timeout after so many seconds, when it goes on.");
  nb::class_<Operator>(module, "Operator", "What Communicator.premulsum() makes.");
  nb::class_<Communicator> type(
      module, "Communicator", nb::is_weak_referenceable(),
      "One rank among others. Use it as a context manager: it is destroyed at the end, and aborted "
      "where an exception leaves the block, so that no other rank waits for this one.");
  defineMaking(type);
  defineRest(type);
  defineCollectives(type);
  module.def("unique_id", uniqueId, "An id for Communicator.join: made on one rank, carried to the others.");
  module.def("launch", launch);
  module.def("version", version);
  module.def("start_group", startGroup);
  module.def("end_group", endGroup);
  module.def("abandon_group", abandonGroup);
}
