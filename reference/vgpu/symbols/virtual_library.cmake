# SPDX-License-Identifier: Apache-2.0
# rankscope_virtual_library(NAME SONAME PREFIX [UNVERSIONED] [SOURCES …]): vgpu/preload/NAME.so with that soname, which `rankscope run --virtual`
# preloads by its path, and SONAME beside librankscope_vgpu.so, for LD_LIBRARY_PATH. Its functions begin with PREFIX (one, or a list) and, unless UNVERSIONED, have the
# version SONAME, as NVIDIA's. Without SOURCES it only stands for a name: the functions are librankscope_vgpu.so's, which it needs.
# The file is not called like the library: PyTorch takes a mapped file that is for a reason to load those of its wheels as well.
function(rankscope_virtual_library name soname prefix)
  cmake_parse_arguments(PARSE_ARGV 3 library "UNVERSIONED" "" "SOURCES")
  set(target rankscope_virtual_${name})
  set(node "${soname}")
  if(library_UNVERSIONED)
    set(node "")
  endif()
  set(global "global: ")
  foreach(beginning IN LISTS prefix)
    string(APPEND global "${beginning}*; ")
  endforeach()
  if(NOT library_SOURCES)
    set(global "")
    set(library_SOURCES "${CMAKE_CURRENT_SOURCE_DIR}/symbols/name_only.cpp")
  endif()
  set(map "${CMAKE_CURRENT_BINARY_DIR}/${name}.map")
  file(CONFIGURE OUTPUT "${map}" CONTENT "${node} { ${global}local: *; };\n" @ONLY)

  add_library(${target} SHARED ${library_SOURCES} "${CMAKE_CURRENT_SOURCE_DIR}/symbols/older_glibc.cpp")
  target_link_libraries(${target} PRIVATE rankscope_options rankscope_cuda_headers)
  target_link_options(${target} PRIVATE "LINKER:--version-script=${map}" "LINKER:-soname,${soname}" LINKER:--no-as-needed
    LINKER:--exclude-libs,ALL -static-libstdc++ -static-libgcc)
  target_link_libraries(${target} PRIVATE rankscope_vgpu)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET default VISIBILITY_INLINES_HIDDEN ON NO_SONAME ON PREFIX "" OUTPUT_NAME ${name}
    LIBRARY_OUTPUT_DIRECTORY "${RANKSCOPE_LIB_DIR}/vgpu/preload" BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/.." LINK_DEPENDS "${map}"
    UNITY_BUILD OFF)
  set(owner ${target})
  set(linked "preload/${name}.so")
  if(NOT global)
    set(owner rankscope_vgpu)
    set(linked librankscope_vgpu.so)
  endif()
  add_custom_command(TARGET ${owner} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink ${linked} "${RANKSCOPE_LIB_DIR}/vgpu/${soname}")
  set_property(GLOBAL APPEND PROPERTY RANKSCOPE_VIRTUAL_LIBRARIES ${target})
endfunction()
