# SPDX-License-Identifier: Apache-2.0
# rankscope_refusals(NAME LIBRARY RESULT [STATUS]): a source with a weak function for every name in symbols/NAME.txt. A definition of our own, anywhere in
# the same library, takes its place; without one the call ends the job and
# says which it was, or returns STATUS, where that is what the library itself says of what it does not support.
function(rankscope_refusals name library result)
  set(list "${CMAKE_CURRENT_SOURCE_DIR}/symbols/${name}.txt")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
  file(STRINGS "${list}" functions REGEX "^[^#]")
  set(text "// Generated from symbols/${name}.txt.\n#include \"reference/vgpu/device/refusal.h\"\nextern \"C\" {\n")
  foreach(function IN LISTS functions)
    if(ARGC GREATER 3)
      string(APPEND text "RANKSCOPE_RETURNS(${function}, ${ARGV3})\n")
    else()
      string(APPEND text "RANKSCOPE_REFUSES(${function}, \"${library}\")\n")
    endif()
  endforeach()
  string(APPEND text "}\n")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/refusals_${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "${text}" @ONLY)
  set(${result} "${source}" PARENT_SCOPE)
endfunction()

