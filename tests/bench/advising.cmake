# SPDX-License-Identifier: Apache-2.0
find_package(fmt QUIET)
if(TARGET rankscope_analyzer AND NOT RANKSCOPE_SANITIZE)
  add_executable(rankscope_bench_advising advising_bench.cpp)
  target_link_libraries(rankscope_bench_advising PRIVATE rankscope_analyzer rankscope_store fmt::fmt)
endif()
