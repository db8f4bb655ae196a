# SPDX-License-Identifier: Apache-2.0
# Options of the build, and what every target shares.

set(RANKSCOPE_ROOMS "injector;collector;analyzer;reference;gui;tests" CACHE STRING "Rooms to build")
set(RANKSCOPE_SANITIZE "" CACHE STRING "Sanitizers of the offline rooms and their tests: address,undefined or thread")
option(RANKSCOPE_CUDA "Build what needs CUDA headers (injector, reference)" ON)
option(RANKSCOPE_TESTS "Build the tests" ON)
set(RANKSCOPE_UNIT_TESTS "injector;collector;analyzer;reference;gui" CACHE STRING "Rooms whose unit tests are built with the tests")
option(RANKSCOPE_DEBUG_LINES "Debug information of functions and lines only, enough for backtraces: a third less to compile" OFF)
if(RANKSCOPE_DEBUG_LINES)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-g1>)
endif()

# A compiler that collects its garbage later is a tenth quicker and takes up to half a GiB more at its peak.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:--param=ggc-min-heapsize=524288>)
endif()

# One layout for the build tree and the installed tree: bin/, lib/rankscope/, libexec/rankscope/, share/rankscope/.
set(RANKSCOPE_BIN_DIR "${CMAKE_BINARY_DIR}/bin")
set(RANKSCOPE_LIB_DIR "${CMAKE_BINARY_DIR}/lib/rankscope")
set(RANKSCOPE_LIBEXEC_DIR "${CMAKE_BINARY_DIR}/libexec/rankscope")
set(RANKSCOPE_SHARE_DIR "${CMAKE_BINARY_DIR}/share/rankscope")

find_program(RANKSCOPE_CCACHE ccache)
if(RANKSCOPE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${RANKSCOPE_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${RANKSCOPE_CCACHE}")
endif()

add_library(rankscope_options INTERFACE)
target_include_directories(rankscope_options INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(rankscope_options INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers)
if(CMAKE_UNITY_BUILD)
  # GCC takes the files of a unit for headers, in whose anonymous namespaces names should not be.
  target_compile_options(rankscope_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

# What takes no time worth telling when it runs: in builds for development -Og takes two fifths less to compile than -O2.
function(rankscope_optimise_lightly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-Og>)
endfunction()

# Targets of the offline rooms (collector, analyzer, gui) and their tests link this: it carries the sanitizers.
add_library(rankscope_offline INTERFACE)
target_link_libraries(rankscope_offline INTERFACE rankscope_options)
option(RANKSCOPE_FUZZ "Make libFuzzer's programs of the fuzz targets (clang)" OFF)
if(RANKSCOPE_FUZZ)
  target_compile_options(rankscope_offline INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(RANKSCOPE_SANITIZE)
  # -Og compiles as fast as -O0, and runs faster.
  target_compile_options(rankscope_offline INTERFACE -fsanitize=${RANKSCOPE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -Og)
  # Whether a pointer is null or aligned is asked wherever one is used, a third of the compiler's work. ASan reports null
  # when it is used, and memory that is not aligned comes from files as they lie there: targets that read such have the
  # property RANKSCOPE_READS_BYTES.
  if(RANKSCOPE_SANITIZE MATCHES "undefined")
    target_compile_options(rankscope_offline INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:RANKSCOPE_READS_BYTES>>>:-fno-sanitize=null,alignment>)
  endif()
  target_link_options(rankscope_offline INTERFACE -fsanitize=${RANKSCOPE_SANITIZE})
endif()
