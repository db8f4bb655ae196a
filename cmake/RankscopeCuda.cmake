# SPDX-License-Identifier: Apache-2.0
# Finds nvcc and the headers of CUDA, CUPTI, NVTX and NCCL. Nothing of them is linked: CUPTI and NCCL are opened at run time.
# Sets RANKSCOPE_HAVE_CUDA, RANKSCOPE_NVCC and the target rankscope_cuda_headers. Hint: RANKSCOPE_CUDA_ROOT, CUDA_HOME, CUDA_PATH.

set(RANKSCOPE_CUDA_ROOT "$ENV{CUDA_HOME}" CACHE PATH "Folder that holds bin/nvcc and include/cuda_runtime.h")
set(RANKSCOPE_HAVE_CUDA OFF)
if(RANKSCOPE_CUDA)
  set(_hints "${RANKSCOPE_CUDA_ROOT}" "$ENV{CUDA_PATH}" /usr/local/cuda)
  find_program(RANKSCOPE_NVCC nvcc HINTS ${_hints} PATH_SUFFIXES bin)
  find_path(RANKSCOPE_CUDART_INCLUDE cuda_runtime_api.h HINTS ${_hints} PATH_SUFFIXES include)
  find_path(RANKSCOPE_CUPTI_INCLUDE cupti.h HINTS ${_hints} PATH_SUFFIXES include extras/CUPTI/include)
  find_path(RANKSCOPE_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${_hints} PATH_SUFFIXES include)
  find_path(RANKSCOPE_NCCL_INCLUDE nccl.h HINTS ${_hints} PATH_SUFFIXES include)
  # The virtual GPUs stand in for libcudart.so.13. What is built with these headers records jobs of CUDA 11.8 and newer.
  set(_cuda_version 0)
  if(RANKSCOPE_CUDART_INCLUDE)
    file(STRINGS "${RANKSCOPE_CUDART_INCLUDE}/cuda_runtime_api.h" _version_line REGEX "#define CUDART_VERSION +[0-9]+")
    string(REGEX REPLACE ".*CUDART_VERSION +([0-9]+).*" "\\1" _cuda_version "${_version_line}")
  endif()
  if(_cuda_version LESS 13000)
    message(STATUS "CUDA 13 or newer is needed to build, found: ${_cuda_version}")
  elseif(RANKSCOPE_NVCC AND RANKSCOPE_CUDART_INCLUDE AND RANKSCOPE_CUPTI_INCLUDE AND RANKSCOPE_NVTX_INCLUDE AND RANKSCOPE_NCCL_INCLUDE)
    set(RANKSCOPE_HAVE_CUDA ON)
    add_library(rankscope_cuda_headers INTERFACE)
    target_include_directories(rankscope_cuda_headers SYSTEM INTERFACE
      "${RANKSCOPE_CUDART_INCLUDE}" "${RANKSCOPE_CUPTI_INCLUDE}" "${RANKSCOPE_NVTX_INCLUDE}" "${RANKSCOPE_NCCL_INCLUDE}")
    # CUDA 13 keeps <nv/target>, which its own headers include, in a folder that only nvcc searches by itself.
    if(NOT EXISTS "${RANKSCOPE_CUDART_INCLUDE}/nv/target" AND EXISTS "${RANKSCOPE_CUDART_INCLUDE}/cccl/nv/target")
      target_include_directories(rankscope_cuda_headers SYSTEM INTERFACE "${RANKSCOPE_CUDART_INCLUDE}/cccl")
    endif()
  else()
    message(STATUS "CUDA pieces not found: the injector and the reference harness are left out (nvcc: ${RANKSCOPE_NVCC}, "
                   "headers: ${RANKSCOPE_CUDART_INCLUDE} ${RANKSCOPE_CUPTI_INCLUDE} ${RANKSCOPE_NVTX_INCLUDE} ${RANKSCOPE_NCCL_INCLUDE})")
  endif()
endif()
