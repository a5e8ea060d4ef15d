# Whether the library in this package is one for GPUs: where the torch is, and there is an nvcc (cmake/cuda.cmake says which).
# Sets TUTTI_CUDA, and for which GPUs: those of TORCH_CUDA_ARCH_LIST, as PyTorch's own extensions, or else compute capability
# 9.0, and by its PTX later ones. Each takes minutes to compile.
if(torch_cuda STREQUAL none)
  set(TUTTI_CUDA OFF CACHE STRING "Build the library for NVIDIA GPUs: tensors of this torch are in host memory")
  return()
endif()

find_program(TUTTI_NVCC nvcc HINTS ENV CUDACXX PATHS /usr/local/cuda/bin)
if(TUTTI_NVCC OR CMAKE_CUDA_COMPILER)
  set(TUTTI_CUDA ON CACHE STRING "Build the library for NVIDIA GPUs")
else()
  set(TUTTI_CUDA OFF CACHE STRING "Build the library for NVIDIA GPUs: there is no nvcc")
  message(WARNING "torch is a build for CUDA ${torch_cuda}, and there is no nvcc in PATH nor in /usr/local/cuda/bin: "
    "this tutti-torch is for CPU tensors only")
endif()

# "8.0;9.0+PTX" is "80-real;90": code for these, and the PTX of the last.
set(listed "$ENV{TORCH_CUDA_ARCH_LIST}")
if(NOT listed)
  set(listed 9.0+PTX)
endif()
string(REGEX MATCHALL "[0-9]+[.][0-9]+[a-z]?([+]PTX)?" listed "${listed}")
string(REPLACE "." "" listed "${listed}")
list(TRANSFORM listed APPEND -real REGEX "^[0-9]+[a-z]?$")
list(TRANSFORM listed REPLACE "[+]PTX$" "")
set(CMAKE_CUDA_ARCHITECTURES ${listed} CACHE STRING "GPUs to build for")
