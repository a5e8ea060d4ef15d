#include "kernels/convert.h"

#include "kernels/host/combine.h"

namespace tutti::kernels {

float toFloat(DataType type, uint32_t bits) noexcept {
  switch (type) {
    case DataType::kFloat16:
      return decode<Float16>(static_cast<uint16_t>(bits));
    case DataType::kBfloat16:
      return decode<Bfloat16>(static_cast<uint16_t>(bits));
    case DataType::kFloat8e4m3:
      return decode<Float8e4m3>(static_cast<uint8_t>(bits));
    case DataType::kFloat8e5m2:
      return decode<Float8e5m2>(static_cast<uint8_t>(bits));
    default:
      return std::bit_cast<float>(bits);
  }
}

uint32_t fromFloat(DataType type, float value) noexcept {
  switch (type) {
    case DataType::kFloat16:
      return encode<Float16>(value);
    case DataType::kBfloat16:
      return encode<Bfloat16>(value);
    case DataType::kFloat8e4m3:
      return encode<Float8e4m3>(value);
    case DataType::kFloat8e5m2:
      return encode<Float8e5m2>(value);
    default:
      return std::bit_cast<uint32_t>(value);
  }
}

}  // namespace tutti::kernels
