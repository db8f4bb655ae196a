# SPDX-License-Identifier: Apache-2.0
# Included by this folder's CMakeLists.txt. The recorded runs live beside the project, not in it: tests skip where they are absent.
set(_shared_data "${CMAKE_SOURCE_DIR}/../shared/data")
set(_importers "${CMAKE_SOURCE_DIR}/tests/unit/collector/importers")

add_executable(collector_importers_test
  "${_importers}/collective_alignment_test.cpp"
  "${_importers}/exact_number_test.cpp"
  "${_importers}/import_run_test.cpp"
  "${_importers}/kineto_rank_test.cpp"
  "${_importers}/kineto_reader_test.cpp"
  "${_importers}/recorded_traces_test.cpp"
  "${CMAKE_SOURCE_DIR}/tests/fuzz/kineto_damage_test.cpp")
target_compile_definitions(collector_importers_test PRIVATE RANKSCOPE_SHARED_DATA="${_shared_data}")
target_link_libraries(collector_importers_test PRIVATE rankscope_importers rankscope_collector rankscope_offline GTest::gtest_main)
gtest_discover_tests(collector_importers_test TEST_PREFIX "collector." DISCOVERY_TIMEOUT 60)
