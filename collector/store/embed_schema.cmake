# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C++ source that holds the text of INPUT. The text is cut into pieces because compilers limit the length of one literal.
file(READ "${INPUT}" text)
string(LENGTH "${text}" length)
set(pieces "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 8000 piece)
  string(APPEND pieces "    R\"rankscope_sql(${piece})rankscope_sql\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE "${OUTPUT}" "// Generated from schema.sql by embed_schema.cmake.\n#include \"collector/store/schema.h\"\n\n"
  "namespace rankscope::store {\n\nstd::string_view schemaSql() noexcept {\n    return\n${pieces}        ;\n}\n\n}  // namespace rankscope::store\n")
