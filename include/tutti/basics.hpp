// What the rest of the C++ face (tutti.hpp, which is to be included) is made with: errors, element types, ids.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "tutti/tutti.h"

namespace tutti {
inline namespace face0 {  // its number is the major version: two of them can live in one program

// What a failed call says: the code to branch on, and in what() the text for a person.
class Exception : public std::runtime_error {
 public:
  Exception(tuttiResult_t code, const std::string& text) : std::runtime_error(text), code_(code) {}
  tuttiResult_t code() const noexcept { return code_; }

 private:
  tuttiResult_t code_;
};

namespace detail {

// The communicator's text when it has one, else the calling thread's, else the code's.
[[noreturn]] inline void raise(tuttiResult_t result, tuttiComm_t comm) {
  std::string text = tuttiGetLastError(comm);
  if (text.empty()) text = tuttiGetLastError(nullptr);
  throw Exception(result, text.empty() ? tuttiGetErrorString(result) : text);
}

inline void check(tuttiResult_t result, tuttiComm_t comm = nullptr) {
  if (result != tuttiSuccess) raise(result, comm);
}

// That it goes on in the background is no error.
inline void checkBegun(tuttiResult_t result) {
  if (result != tuttiInProgress) check(result);
}

template <typename T>
struct NoElement {
  static_assert(!sizeof(T), "no tutti data type for this element: use the overload that takes a tuttiDataType_t");
};

template <typename T>
constexpr tuttiDataType_t integerType() {
  constexpr bool isSigned = std::is_signed_v<T>;
  if constexpr (sizeof(T) == 1)
    return isSigned ? tuttiInt8 : tuttiUint8;
  else if constexpr (sizeof(T) == 2)
    return isSigned ? tuttiInt16 : tuttiUint16;
  else if constexpr (sizeof(T) == 4)
    return isSigned ? tuttiInt32 : tuttiUint32;
  else if constexpr (sizeof(T) == 8)
    return isSigned ? tuttiInt64 : tuttiUint64;
  else
    return NoElement<T>(), tuttiNumTypes;
}

template <typename T>
constexpr tuttiDataType_t elementType() {
  if constexpr (std::is_same_v<T, float>)
    return tuttiFloat32;
  else if constexpr (std::is_same_v<T, double>)
    return tuttiFloat64;
  else if constexpr (std::is_same_v<T, std::byte>)
    return tuttiUint8;
  else if constexpr (std::is_same_v<T, bool>)
    return tuttiBool;
  else if constexpr (std::is_integral_v<T>)
    return integerType<T>();
  else
    return NoElement<T>(), tuttiNumTypes;
}

}  // namespace detail

// The data type of a C++ element. Specialise it for a type of your own that has the layout of one of tutti's
// (`template <> inline constexpr tuttiDataType_t tutti::kDataTypeOf<MyBfloat16> = tuttiBfloat16;`).
template <typename T>
inline constexpr tuttiDataType_t kDataTypeOf = detail::elementType<T>();

// The library's TUTTI_VERSION_CODE.
inline int version() {
  int code = 0;
  detail::check(tuttiGetVersion(&code));
  return code;
}

// The newest text of an error of any thread: see tuttiGetLastProcessError.
inline std::string lastProcessError() { return tuttiGetLastProcessError(); }

// See tuttiGetUniqueId: made on one rank, carried to the others as bytes.
class UniqueId {
 public:
  static UniqueId create() {
    UniqueId made;
    detail::check(tuttiGetUniqueId(&made.id_));
    return made;
  }
  // For growing a communicator: see tuttiCommGetUniqueId.
  static UniqueId createFor(tuttiComm_t comm) {
    UniqueId made;
    detail::check(tuttiCommGetUniqueId(comm, &made.id_), comm);
    return made;
  }
  static UniqueId fromBytes(std::span<const std::byte, TUTTI_UNIQUE_ID_BYTES> bytes) {
    UniqueId made;
    for (size_t i = 0; i < bytes.size(); ++i) made.id_.internal[i] = static_cast<char>(bytes[i]);
    return made;
  }
  std::span<const std::byte, TUTTI_UNIQUE_ID_BYTES> bytes() const noexcept {
    return std::as_bytes(std::span(id_.internal));
  }
  const tuttiUniqueId& native() const noexcept { return id_; }

 private:
  UniqueId() = default;
  tuttiUniqueId id_{};
};

}  // namespace face0
}  // namespace tutti
