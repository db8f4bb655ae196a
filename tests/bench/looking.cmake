# SPDX-License-Identifier: Apache-2.0
find_package(fmt QUIET)
if(TARGET rankscope_gui_window AND NOT RANKSCOPE_SANITIZE)
  add_executable(rankscope_bench_looking looking_bench.cpp)
  target_link_libraries(rankscope_bench_looking PRIVATE rankscope_gui_window fmt::fmt)
endif()
