#include "operator.h"

#include <cstring>
#include <string>

#include "errors.h"

namespace nb = nanobind;

namespace tutti::python {
namespace {

struct Row {
  const char* name;
  tuttiRedOp_t op;
};
constexpr Row kOperators[] = {{"sum", tuttiSum}, {"prod", tuttiProd},   {"max", tuttiMax},   {"min", tuttiMin},
                              {"avg", tuttiAvg}, {"band", tuttiBitAnd}, {"bor", tuttiBitOr}, {"bxor", tuttiBitXor}};

// The factor as a value of the type: numpy and ml_dtypes know how to round. Eight bytes are enough for any.
uint64_t bitsOf(double factor, tuttiDataType_t type) {
  const nb::object numpy = nb::module_::import_("numpy");
  const std::string name = nameOf(type);
  const bool isOthers = name == "bfloat16" || name.starts_with("float8");
  const nb::object dtype =
      isOthers ? nb::module_::import_("ml_dtypes").attr(name.c_str()) : nb::object(nb::str(name.c_str()));
  const auto bytes = nb::cast<nb::bytes>(numpy.attr("array")(factor).attr("astype")(dtype).attr("tobytes")());
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.c_str(), bytes.size());
  return bits;
}

}  // namespace

Operator::Operator(Communicator& comm, double factor, tuttiDataType_t type) {
  uint64_t bits = bitsOf(factor, type);
  check(tuttiRedOpCreatePreMulSum(&op_, &bits, type, tuttiScalarHostImmediate, comm.native()), comm.native());
}

tuttiRedOp_t operatorOf(nb::handle op) {
  if (nb::isinstance<Operator>(op)) return nb::cast<Operator&>(op).native();
  const std::string name = nb::cast<std::string>(nb::str(op));
  for (const Row& row : kOperators)
    if (name == row.name) return row.op;
  raise(tuttiInvalidArgument,
        "op is " + name + ": choose one of sum, prod, max, min, avg, band, bor, bxor, or an Operator");
}

}  // namespace tutti::python
