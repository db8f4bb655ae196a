# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C++ source that holds the text of INPUT.
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/CxxLiteral.cmake")
cxx_literal("${INPUT}" schema)
file(WRITE "${OUTPUT}" "// Generated from schema.sql by embed_schema.cmake.\n#include \"collector/store/schema.h\"\n\n"
  "namespace rankscope::store {\n\nstd::string_view schemaSql() noexcept {\n    return\n${schema}        ;\n}\n\n}  // namespace rankscope::store\n")
