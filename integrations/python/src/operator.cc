#include "operator.h"

#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

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

nb::object numpy() { return nb::module_::import_("numpy"); }

std::string shown(nb::handle object) { return nb::cast<std::string>(nb::str(object)); }

// As numpy has it, with all its digits.
nb::object numberOf(nb::handle factor) {
  nb::object number = numpy().attr("asarray")(factor);
  auto kind = nb::cast<std::string>(number.attr("dtype").attr("kind"));
  if (kind == "O" && PyLong_Check(factor.ptr())) {  // of more digits than any whole type has
    number = numpy().attr("asarray")(nb::float_(factor));
    kind = "f";
  }
  if (nb::cast<int>(number.attr("ndim")) != 0 || std::string_view("biuf").find(kind) == std::string_view::npos)
    raise(tuttiInvalidArgument, "factor is " + shown(factor) + ": it is one real number");
  return number;
}

double toDouble(const nb::object& number) { return nb::cast<double>(number.attr("astype")("float64").attr("item")()); }

// Floats round, but not to nothing or infinity; others hold the number itself, or are another one.
bool holds(const nb::object& value, const nb::object& number, bool isFloat) {
  if (!isFloat) return value.attr("item")().equal(number.attr("item")());
  const double rounded = toDouble(value), wanted = toDouble(number);
  return std::isfinite(rounded) == std::isfinite(wanted) && (rounded == 0) == (wanted == 0);
}

// The factor as a value of the type: numpy and ml_dtypes know how to round. Eight bytes are enough for any.
uint64_t bitsOf(nb::handle factor, tuttiDataType_t type) {
  const std::string name = nameOf(type);
  const bool isOthers = name == "bfloat16" || name.starts_with("float8");
  const nb::object dtype =
      isOthers ? nb::module_::import_("ml_dtypes").attr(name.c_str()) : nb::object(nb::str(name.c_str()));
  const nb::object number = numberOf(factor), value = number.attr("astype")(dtype);
  if (!holds(value, number, isOthers || name.starts_with("float")))
    raise(tuttiInvalidArgument, "factor is " + shown(factor) + ", which " + name + " does not hold (it would be " +
                                    shown(value) + "): choose another factor, or scale the arrays beforehand");
  const auto bytes = nb::cast<nb::bytes>(value.attr("tobytes")());
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.c_str(), bytes.size());
  return bits;
}

}  // namespace

Operator::Operator(Communicator& comm, nb::handle factor, tuttiDataType_t type) {
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
