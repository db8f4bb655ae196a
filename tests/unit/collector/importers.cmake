# SPDX-License-Identifier: Apache-2.0
# Included by this folder's CMakeLists.txt. The recorded runs live beside the project, not in it: tests skip where they are absent.
set(_shared_data "${CMAKE_SOURCE_DIR}/../shared/data")
set(_importers "${CMAKE_SOURCE_DIR}/tests/unit/collector/importers")

file(GLOB _tests CONFIGURE_DEPENDS "${_importers}/*_test.cpp")
add_executable(collector_importers_test ${_tests} "${CMAKE_SOURCE_DIR}/tests/fuzz/kineto_damage_test.cpp" "${CMAKE_SOURCE_DIR}/tests/fuzz/flight_damage_test.cpp")
target_compile_definitions(collector_importers_test PRIVATE RANKSCOPE_SHARED_DATA="${_shared_data}"
  RANKSCOPE_MAPPINGS="${CMAKE_SOURCE_DIR}/collector/importers/mappings")
target_link_libraries(collector_importers_test PRIVATE rankscope_importers rankscope_collector rankscope_offline GTest::gtest_main)
rankscope_unite_by_folder(collector_importers_test)
rankscope_discover(collector_importers_test TEST_PREFIX "collector." DISCOVERY_TIMEOUT 60)
