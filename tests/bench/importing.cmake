# SPDX-License-Identifier: Apache-2.0
find_package(benchmark QUIET)
find_package(fmt QUIET)
find_package(ZLIB QUIET)
if(benchmark_FOUND AND TARGET rankscope_importers AND NOT RANKSCOPE_SANITIZE)
  add_executable(rankscope_bench_importing importing_bench.cpp)
  target_link_libraries(rankscope_bench_importing PRIVATE rankscope_importers rankscope_collector rankscope_capture_format rankscope_offline
    benchmark::benchmark fmt::fmt ZLIB::ZLIB)
endif()
