# SPDX-License-Identifier: Apache-2.0
find_package(benchmark QUIET)
find_package(SQLite3 QUIET)
find_package(fmt QUIET)
if(benchmark_FOUND AND TARGET rankscope_analyzer AND NOT RANKSCOPE_SANITIZE)
  add_executable(rankscope_bench_analysing analysing_bench.cpp)
  target_link_libraries(rankscope_bench_analysing PRIVATE rankscope_analyzer rankscope_store benchmark::benchmark SQLite::SQLite3 fmt::fmt)
endif()
