# SPDX-License-Identifier: Apache-2.0
if(TARGET rankscope_importers AND NOT RANKSCOPE_SANITIZE)
  add_executable(rankscope_bench_importing importing_bench.cpp)
  target_link_libraries(rankscope_bench_importing PRIVATE rankscope_importers rankscope_collector rankscope_offline)
endif()
