#include "types.h"

#include <ATen/ATen.h>

#include <array>
#include <optional>

#include "errors.h"

namespace tutti_torch {
namespace {

using c10::ScalarType;
using c10d::ReduceOp;

std::optional<tuttiDataType_t> sameType(ScalarType type) {
  switch (type) {
    case ScalarType::Bool:
      return tuttiBool;
    case ScalarType::Byte:
      return tuttiUint8;
    case ScalarType::Char:
      return tuttiInt8;
    case ScalarType::Short:
      return tuttiInt16;
    case ScalarType::UInt16:
      return tuttiUint16;
    case ScalarType::Int:
      return tuttiInt32;
    case ScalarType::UInt32:
      return tuttiUint32;
    case ScalarType::Long:
      return tuttiInt64;
    case ScalarType::UInt64:
      return tuttiUint64;
    case ScalarType::Half:
      return tuttiFloat16;
    case ScalarType::BFloat16:
      return tuttiBfloat16;
    case ScalarType::Float:
      return tuttiFloat32;
    case ScalarType::Double:
      return tuttiFloat64;
    case ScalarType::Float8_e4m3fn:
      return tuttiFloat8e4m3;
    case ScalarType::Float8_e5m2:
      return tuttiFloat8e5m2;
    default:
      return std::nullopt;
  }
}

// The real and the imaginary part, side by side.
std::optional<tuttiDataType_t> partsOf(ScalarType type) {
  if (type == ScalarType::ComplexHalf) return tuttiFloat16;
  if (type == ScalarType::ComplexFloat) return tuttiFloat32;
  if (type == ScalarType::ComplexDouble) return tuttiFloat64;
  return std::nullopt;
}

constexpr std::array kOperators = {tuttiSum, tuttiAvg,    tuttiProd,  tuttiMin,
                                   tuttiMax, tuttiBitAnd, tuttiBitOr, tuttiBitXor};
constexpr std::array kNames = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM", "UNUSED"};

const char* nameOf(ReduceOp::RedOpType op) { return op < kNames.size() ? kNames[op] : "unknown"; }

bool isSum(ReduceOp::RedOpType op) { return op == ReduceOp::SUM || op == ReduceOp::AVG || op == ReduceOp::PREMUL_SUM; }

bool isBitwise(ReduceOp::RedOpType op) { return op == ReduceOp::BAND || op == ReduceOp::BOR || op == ReduceOp::BXOR; }

at::Tensor givenFactor(const ReduceOp& op) {
  const auto* supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(supplement != nullptr, "tutti: PREMUL_SUM comes without its factor");
  const at::Tensor& tensor = supplement->tensor_factor;
  if (!tensor.defined()) return at::full({1}, supplement->double_factor, at::kDouble);
  TORCH_CHECK_VALUE(tensor.numel() == 1, "tutti: PREMUL_SUM takes one factor, and got ", tensor.numel());
  return tensor.detach().to(at::kCPU).reshape({1}).resolve_conj().resolve_neg();
}

// Rounded to a floating-point type. To an integer it is not: a half would become nothing.
at::Tensor factorOf(const ReduceOp& op, ScalarType type) {
  const at::Tensor given = givenFactor(op);
  TORCH_CHECK_VALUE(!given.is_complex() || at::imag(given).item<double>() == 0,
                    "tutti: PREMUL_SUM takes a real factor, and got ", given.item());
  const at::Tensor real = given.is_complex() ? at::real(given) : given;
  const at::Tensor used = real.to(c10::toRealValueType(type)).contiguous();
  TORCH_CHECK_VALUE(!c10::isIntegralType(type, /*includeBool=*/true) || used.to(real.scalar_type()).equal(real),
                    "tutti: PREMUL_SUM: the factor ", given.item(), " is no value of the tensor's type, ", type);
  return used;
}

}  // namespace

Format formatToMove(ScalarType type) {
  if (const auto same = sameType(type)) return {*same, 1};
  if (const auto parts = partsOf(type)) return {*parts, 2};
  return {tuttiUint8, c10::elementSize(type)};
}

Format formatToReduce(ScalarType type, ReduceOp::RedOpType op) {
  const bool integral = c10::isIntegralType(type, /*includeBool=*/true);
  TORCH_CHECK_VALUE(!isBitwise(op) || integral, "tutti: Cannot use ReduceOp.", nameOf(op), " with non-integral dtype ",
                    type, "; view the tensor as an integer type of the same size");
  TORCH_CHECK_VALUE(type != ScalarType::Bool || op == ReduceOp::SUM || !isSum(op), "tutti: Cannot use ReduceOp.",
                    nameOf(op), " with Bool inputs");
  if (const auto same = sameType(type)) return {*same, 1};
  const auto parts = partsOf(type);
  TORCH_CHECK_VALUE(parts && isSum(op), "tutti: Cannot use ReduceOp.", nameOf(op), " with dtype ", type);
  return {*parts, 2};
}

Operator::Operator(const ReduceOp& op, ScalarType type) : op_(op.op_), format_(formatToReduce(type, op_)) {
  TORCH_CHECK_VALUE(op_ < ReduceOp::UNUSED, "tutti: ReduceOp.", nameOf(op_), " is no operator");
  if (op_ == ReduceOp::PREMUL_SUM) factor_ = factorOf(op, type);
}

tuttiRedOp_t Operator::on(tuttiComm_t comm) {
  if (op_ != ReduceOp::PREMUL_SUM) return kOperators[op_];
  if (comm_ != nullptr) return made_;
  check(tuttiRedOpCreatePreMulSum(&made_, factor_.data_ptr(), format_.type, tuttiScalarHostImmediate, comm));
  comm_ = comm;
  return made_;
}

Operator::~Operator() {
  if (comm_ != nullptr) tuttiRedOpDestroy(made_, comm_);
}

}  // namespace tutti_torch
