// What the texts of deadlines call them: the variable that sets each, and the field of tuttiConfig_t.
#pragma once

namespace tutti {

inline constexpr const char* kJoinDeadline = "TUTTI_JOIN_TIMEOUT_MS (config.joinTimeoutMs)";
inline constexpr const char* kConnectDeadline = "TUTTI_CONNECT_TIMEOUT_MS (config.connectTimeoutMs)";
inline constexpr const char* kOperationDeadline = "TUTTI_OPERATION_TIMEOUT_MS (config.operationTimeoutMs)";

}  // namespace tutti
