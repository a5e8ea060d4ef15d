// What the texts of deadlines call them: the variable that sets each, and the field of tuttiConfig_t; of a call, that
// of tuttiCallConfig_t.
#pragma once

namespace tutti {

inline constexpr const char* kJoinDeadline = "TUTTI_JOIN_TIMEOUT_MS (config.joinTimeoutMs)";
inline constexpr const char* kConnectDeadline = "TUTTI_CONNECT_TIMEOUT_MS (config.connectTimeoutMs)";
inline constexpr const char* kOperationDeadline = "TUTTI_OPERATION_TIMEOUT_MS (config.operationTimeoutMs)";
inline constexpr const char* kCallDeadline = "timeout of this call (its config.timeoutMs)";

}  // namespace tutti
