# Whether and how this build has CUDA. Sets TUTTI_HAS_CUDA; kernels/CMakeLists.txt goes by it.
#
# AUTO takes CUDA where a compiler for it is found and is new enough. The sanitizers know nothing of GPUs: a build with
# them has none, and runs the kernels in the emulation only.
set(TUTTI_OLDEST_CUDA 12.5)

set(TUTTI_HAS_CUDA FALSE)
if(NOT TUTTI_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "TUTTI_CUDA is ON, OFF or AUTO, not \"${TUTTI_CUDA}\"")
endif()
if(TUTTI_SANITIZE AND TUTTI_CUDA STREQUAL ON)
  message(FATAL_ERROR "TUTTI_CUDA=ON cannot be had together with TUTTI_SANITIZE: leave one of them out")
endif()
if(TUTTI_CUDA STREQUAL OFF OR TUTTI_SANITIZE)
  return()
endif()

find_program(TUTTI_NVCC nvcc HINTS ENV CUDACXX PATHS /usr/local/cuda/bin)
if(NOT TUTTI_NVCC AND NOT CMAKE_CUDA_COMPILER)
  if(TUTTI_CUDA STREQUAL ON)
    message(FATAL_ERROR "TUTTI_CUDA=ON, and there is no nvcc in PATH nor in /usr/local/cuda/bin: "
      "install the CUDA toolkit, or give -DCMAKE_CUDA_COMPILER=/path/to/nvcc")
  endif()
  message(STATUS "CUDA: no nvcc found, so this build is for host memory only")
  return()
endif()

# Real code for each generation from Turing on, and PTX of the last for those to come.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90-real 100 CACHE STRING "GPUs to build for")
endif()
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${TUTTI_NVCC})
endif()
if(NOT CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS TUTTI_OLDEST_CUDA)
  if(TUTTI_CUDA STREQUAL ON)
    message(FATAL_ERROR "CUDA ${TUTTI_OLDEST_CUDA} or newer is needed, and this is ${CMAKE_CUDA_COMPILER_VERSION}")
  endif()
  message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER_VERSION} is older than ${TUTTI_OLDEST_CUDA}, so this build has none")
  return()
endif()
set(TUTTI_HAS_CUDA TRUE)
message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}")

if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # which CMake before 3.26 does not know
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(CMAKE_CUDA_FLAGS_RELEASE "-O2")
# The launcher keeps what ptxas says of registers and spills in a file beside the object: kernels/cuda/x.cu.o.ptxas.
# (No ccache here: an object that it gives back comes without a word of ptxas.)
set(CMAKE_CUDA_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/keep_ptxas_report)
