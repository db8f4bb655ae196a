# SPDX-License-Identifier: Apache-2.0
# Tests of the virtual GPUs: the engine by itself, and whole jobs of several processes.
if(NOT TARGET rankscope_vgpu)
  return()
endif()

add_executable(rankscope_vgpu_tests test_vgpu_engine.cpp test_vgpu_links.cpp test_vgpu_models.cpp)
target_link_libraries(rankscope_vgpu_tests PRIVATE rankscope_vgpu_engine GTest::gtest_main)
gtest_discover_tests(rankscope_vgpu_tests)

# An ordinary CUDA program. It is linked against the virtual NCCL because a machine without GPUs may have no other.
set(vgpu_job "${CMAKE_CURRENT_BINARY_DIR}/vgpu_job")
add_custom_command(OUTPUT "${vgpu_job}"
  COMMAND "${RANKSCOPE_NVCC}" -std=c++17 -O1 -cudart shared -I "${RANKSCOPE_NCCL_INCLUDE}"
          -o "${vgpu_job}" "${CMAKE_CURRENT_SOURCE_DIR}/vgpu_job.cu" -Xlinker "${RANKSCOPE_LIB_DIR}/vgpu/libnccl.so.2"
  DEPENDS vgpu_job.cu rankscope_vgpu
  COMMENT "nvcc vgpu_job")
add_custom_target(rankscope_vgpu_job DEPENDS "${vgpu_job}")

add_library(rankscope_vgpu_cupti_client MODULE vgpu_cupti_client.cpp)
target_link_libraries(rankscope_vgpu_cupti_client PRIVATE rankscope_options rankscope_cuda_headers rankscope_vgpu)
set_target_properties(rankscope_vgpu_cupti_client PROPERTIES CXX_VISIBILITY_PRESET default)

foreach(version IN ITEMS 2 5 6 7)
  add_library(rankscope_vgpu_tuner_v${version} MODULE vgpu_tuner.cpp)
  target_link_libraries(rankscope_vgpu_tuner_v${version} PRIVATE rankscope_options rankscope_cuda_headers)
  target_compile_definitions(rankscope_vgpu_tuner_v${version} PRIVATE VGPU_TUNER_VERSION=${version})
endforeach()

add_library(rankscope_vgpu_profiler MODULE vgpu_profiler.cpp)
target_link_libraries(rankscope_vgpu_profiler PRIVATE rankscope_options rankscope_cuda_headers)

add_executable(rankscope_vgpu_job_tests test_vgpu_jobs.cpp)
target_link_libraries(rankscope_vgpu_job_tests PRIVATE rankscope_options rankscope_cuda_headers GTest::gtest_main)
target_compile_definitions(rankscope_vgpu_job_tests PRIVATE VGPU_FOLDER="${RANKSCOPE_LIB_DIR}/vgpu" VGPU_JOB="${vgpu_job}"
  VGPU_CLIENT="$<TARGET_FILE:rankscope_vgpu_cupti_client>"
  VGPU_TUNER_V5="$<TARGET_FILE:rankscope_vgpu_tuner_v5>" VGPU_TUNER_V2="$<TARGET_FILE:rankscope_vgpu_tuner_v2>" VGPU_TUNER_V6="$<TARGET_FILE:rankscope_vgpu_tuner_v6>"
  VGPU_TUNER_V7="$<TARGET_FILE:rankscope_vgpu_tuner_v7>"
  VGPU_PROFILER="$<TARGET_FILE:rankscope_vgpu_profiler>")
add_dependencies(rankscope_vgpu_job_tests rankscope_vgpu_job rankscope_vgpu_cupti_client rankscope_vgpu_tuner_v5 rankscope_vgpu_tuner_v2 rankscope_vgpu_tuner_v6 rankscope_vgpu_tuner_v7
  rankscope_vgpu_profiler)
gtest_discover_tests(rankscope_vgpu_job_tests PROPERTIES TIMEOUT 120)
