# SPDX-License-Identifier: Apache-2.0
# cxx_literal(FILE RESULT): the text of FILE as C++ string literals. In pieces, because compilers limit the length of one literal.
function(cxx_literal file result)
  file(READ "${file}" text)
  string(LENGTH "${text}" length)
  set(pieces "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8000 piece)
    string(APPEND pieces "    R\"rankscope_text(${piece})rankscope_text\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  set(${result} "${pieces}" PARENT_SCOPE)
endfunction()
