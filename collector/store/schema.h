// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace rankscope::store {

/// user_version of a trace.db this program writes and reads.
inline constexpr int kSchemaVersion = 1;

/// Text of schema.sql, put into the library by the build.
std::string_view schemaSql() noexcept;

}  // namespace rankscope::store
