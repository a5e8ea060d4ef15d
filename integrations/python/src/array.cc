#include "array.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <array>
#include <string_view>

#include "errors.h"

namespace nb = nanobind;

namespace tutti::python {
namespace {

using Code = nb::dlpack::dtype_code;

struct TypeRow {
  const char* name;
  const char* typestr;  // of numpy's array interface; null: numpy itself does not know the type
  Code code;
  uint8_t bits;
  tuttiDataType_t type;
};

constexpr auto kTypes = std::to_array<TypeRow>({
    {"float32", "<f4", Code::Float, 32, tuttiFloat32},
    {"float64", "<f8", Code::Float, 64, tuttiFloat64},
    {"float16", "<f2", Code::Float, 16, tuttiFloat16},
    {"bfloat16", nullptr, Code::Bfloat, 16, tuttiBfloat16},
    {"int8", "|i1", Code::Int, 8, tuttiInt8},
    {"uint8", "|u1", Code::UInt, 8, tuttiUint8},
    {"int16", "<i2", Code::Int, 16, tuttiInt16},
    {"uint16", "<u2", Code::UInt, 16, tuttiUint16},
    {"int32", "<i4", Code::Int, 32, tuttiInt32},
    {"uint32", "<u4", Code::UInt, 32, tuttiUint32},
    {"int64", "<i8", Code::Int, 64, tuttiInt64},
    {"uint64", "<u8", Code::UInt, 64, tuttiUint64},
    {"bool", "|b1", Code::Bool, 8, tuttiBool},
    {"float8_e4m3fn", nullptr, Code::Float8_E4M3FN, 8, tuttiFloat8e4m3},
    {"float8_e5m2", nullptr, Code::Float8_E5M2, 8, tuttiFloat8e5m2},
});

template <class Is>
const TypeRow* rowWhere(Is is) {
  for (const TypeRow& row : kTypes)
    if (is(row)) return &row;
  return nullptr;
}

[[noreturn]] void refuse(const char* argument, const std::string& text) {
  raise(tuttiInvalidArgument, std::string(argument) + " " + text);
}

std::string shown(nb::handle object) { return nb::cast<std::string>(nb::str(object)); }

std::string classOf(nb::handle object) { return nb::type_name(object.type()).c_str(); }

[[noreturn]] void refuseType(const char* argument, const std::string& name) {
  std::string known;
  for (const TypeRow& row : kTypes) known += std::string(known.empty() ? "" : ", ") + row.name;
  refuse(argument, "is of " + name + ", which no operation takes: choose one of " + known);
}

[[noreturn]] void refuseStrides(const char* argument) {
  refuse(argument,
         "is not C-contiguous, and nothing is copied here: hand over a contiguous part, or a copy of it "
         "(numpy.ascontiguousarray, Tensor.contiguous)");
}

[[noreturn]] void refuseReadOnly(const char* argument) {
  refuse(argument, "is read-only, and the operation writes to it: hand over a copy");
}

// numpy's own arrays are told by their name: every call comes by here, and to look at a module would take longer.
bool isPlainArray(nb::handle object) { return std::string_view(Py_TYPE(object.ptr())->tp_name) == "numpy.ndarray"; }

bool isA(nb::handle object, const char* module, const char* type) {
  return nb::isinstance(object, nb::module_::import_(module).attr(type));
}

// What answers as an array does, and is none. The memory that a scalar tells of is a copy, gone after the answer.
void refuseOtherThanArray(nb::handle object, const char* argument) {
  if (isPlainArray(object)) return;
  if (isA(object, "numpy", "generic"))
    refuse(argument, "is a scalar of numpy (" + classOf(object) +
                         "), which has no memory to be sent from or written to: hand over an array, numpy.array([x])");
  if (isA(object, "numpy.ma", "MaskedArray"))
    refuse(argument,
           "is a masked array, and what lies under the mask would be sent as well: hand over x.filled(...), "
           "or x.data if that is meant");
}

Array arrayOf(void* data, size_t count, const TypeRow& row, nb::object keeper) {
  return {data, count, row.type, row.bits / size_t{8}, std::move(keeper)};
}

// numpy's own: quick, and the only way to arrays of ml_dtypes, whose types no protocol has a word for.
Array ofInterface(nb::handle object, const nb::dict& face, bool writes, const char* argument) {
  refuseOtherThanArray(object, argument);
  if (face.contains("strides") && !face["strides"].is_none()) refuseStrides(argument);
  const auto data = nb::cast<nb::tuple>(face["data"]);
  if (writes && PyObject_IsTrue(nb::object(data[1]).ptr()) == 1) refuseReadOnly(argument);
  const auto typestr = nb::cast<std::string>(face["typestr"]);
  const TypeRow* row = rowWhere([&](const TypeRow& each) { return each.typestr && typestr == each.typestr; });
  if (row == nullptr) {
    const auto name = nb::hasattr(object, "dtype") ? shown(nb::object(object.attr("dtype"))) : typestr;
    row = rowWhere([&](const TypeRow& each) { return each.typestr == nullptr && name == each.name; });
    if (row == nullptr) refuseType(argument, name);
  }
  size_t count = 1;
  for (nb::handle extent : nb::cast<nb::tuple>(face["shape"])) count *= nb::cast<size_t>(extent);
  return arrayOf(nb::cast<uintptr_t>(data[0]) ? reinterpret_cast<void*>(nb::cast<uintptr_t>(data[0])) : nullptr, count,
                 *row, nb::borrow(object));
}

bool isContiguous(const nb::ndarray<nb::ro>& array) {
  int64_t expected = 1;
  for (size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != expected) return array.size() == 0;
    expected *= static_cast<int64_t>(array.shape(i));
  }
  return true;
}

// Holds the export: a bytearray cannot be resized, nor a tensor's memory be freed, meanwhile.
template <class Ndarray>
nb::object keeperOf(nb::handle object, Ndarray array) {
  auto* held = new Ndarray(std::move(array));
  return nb::make_tuple(nb::borrow(object),
                        nb::capsule(held, [](void* p) noexcept { delete static_cast<Ndarray*>(p); }));
}

// A gradient would not know that its tensor has been written to.
bool requiresGradient(nb::handle object) {
  return nb::hasattr(object, "requires_grad") && nb::cast<bool>(object.attr("requires_grad"));
}

// PyTorch's views whose numbers are those in memory with the other sign, such as the imaginary part of a conjugate.
bool isNegated(nb::handle object) { return nb::hasattr(object, "is_neg") && nb::cast<bool>(object.attr("is_neg")()); }

// As a buffer; TensorFlow's tensors, which never change, say nothing of it by DLPack.
bool isReadOnlyBuffer(nb::handle object) {
  if (!PyObject_CheckBuffer(object.ptr())) return false;
  const auto view = nb::steal(PyMemoryView_FromObject(object.ptr()));
  if (view.is_valid()) return nb::cast<bool>(view.attr("readonly"));
  PyErr_Clear();
  return false;
}

[[noreturn]] void refuseObject(nb::handle object, const char* argument) {
  if (nb::hasattr(object, "device") && shown(nb::object(object.attr("device"))) != "cpu")
    refuse(argument, "is in the memory of " + shown(nb::object(object.attr("device"))) +
                         ": this package moves what is in host memory");
  refuse(argument,
         "is of " + classOf(object) + ", which is neither a numpy array nor speaks DLPack or the buffer protocol");
}

Array ofNdarray(nb::handle object, bool writes, const char* argument) {
  if (writes && requiresGradient(object))
    refuse(argument, "is a tensor that requires a gradient, and is written to: hand over tensor.detach()");
  if (isNegated(object))
    refuse(argument,
           "is a view with PyTorch's negative bit, whose memory holds its numbers with the other sign: hand over "
           "tensor.resolve_neg()");
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(object, array, false)) refuseObject(object, argument);
  if (array.device_type() != nb::device::cpu::value) refuseObject(object, argument);
  const auto type = array.dtype();
  const TypeRow* row = rowWhere([&](const TypeRow& each) {
    return type.lanes == 1 && type.bits == each.bits && type.code == static_cast<uint8_t>(each.code);
  });
  if (row == nullptr)
    refuseType(argument, "a type that DLPack numbers " + std::to_string(type.code) + " of " +
                             std::to_string(type.bits) + " bits");
  if (!isContiguous(array)) refuseStrides(argument);
  if (writes && isReadOnlyBuffer(object)) refuseReadOnly(argument);
  if (nb::ndarray<> all; writes && !nb::try_cast(object, all, false)) refuseReadOnly(argument);
  void* const data = const_cast<void*>(array.data());
  const size_t count = array.size();
  return arrayOf(data, count, *row, keeperOf(object, std::move(array)));
}

Array taken(nb::handle object, bool writes, const char* argument) {
  if (nb::hasattr(object, "__array_interface__")) {
    const nb::object face = object.attr("__array_interface__");
    if (nb::isinstance<nb::dict>(face) && nb::isinstance<nb::tuple>(nb::cast<nb::dict>(face).attr("get")("data")))
      return ofInterface(object, nb::cast<nb::dict>(face), writes, argument);
  }
  return ofNdarray(object, writes, argument);
}

}  // namespace

Array readable(nb::handle object, const char* argument) { return taken(object, false, argument); }
Array writable(nb::handle object, const char* argument) { return taken(object, true, argument); }

tuttiDataType_t typeNamed(nb::handle dtype) {
  std::string name = shown(dtype);
  if (nb::hasattr(dtype, "__name__")) name = shown(nb::object(dtype.attr("__name__")));
  if (name.starts_with("torch.")) name.erase(0, 6);
  const TypeRow* row = rowWhere([&](const TypeRow& each) { return name == each.name; });
  if (row == nullptr) refuseType("dtype", name);
  return row->type;
}

const char* nameOf(tuttiDataType_t type) {
  const TypeRow* row = rowWhere([&](const TypeRow& each) { return each.type == type; });
  return row != nullptr ? row->name : "unknown";
}

}  // namespace tutti::python
