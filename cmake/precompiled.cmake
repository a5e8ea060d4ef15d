# Most of the time that a file takes to compile goes into the standard library's headers. They are read once for all
# targets that have the same flags: libraries, programs (whose code is placed differently) and programs of GoogleTest.
# -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without; `tools/check --tidy` reads the files like that, and so shows that
# each includes what it uses.
set(TUTTI_PRECOMPILED
  <algorithm> <array> <atomic> <bit> <chrono> <cmath> <condition_variable> <cstdio> <cstdlib> <cstring> <deque> <filesystem>
  <fstream> <functional> <map> <memory> <memory_resource> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string>
  <string_view> <thread> <tuple> <utility> <vector> <fmt/format.h>)

# tutti_add_precompiled(target library header...): makes `target` the owner of a precompiled header for what uses `library`,
# with these headers as well.
function(tutti_add_precompiled target library)
  foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS COMPILE_OPTIONS)
    set_property(TARGET ${target} APPEND PROPERTY ${property} $<TARGET_PROPERTY:${library},INTERFACE_${property}>)
  endforeach()
  target_precompile_headers(${target} PRIVATE ${TUTTI_PRECOMPILED} ${ARGN})
endfunction()

# Gives each C++ target of the folder, and of those in it, its precompiled header.
function(tutti_precompile_folder folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(sources ${target} SOURCES)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    if(target MATCHES "^tutti_precompiled|^check_headers$" OR NOT sources MATCHES "[.]cc(;|$)")
      continue()
    elseif(type STREQUAL EXECUTABLE AND libraries MATCHES "tutti_test_support|GTest::")
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${TUTTI_TEST_OPTIONS}>)
      target_precompile_headers(${target} REUSE_FROM tutti_precompiled_tests)
    elseif(type STREQUAL EXECUTABLE)
      target_precompile_headers(${target} REUSE_FROM tutti_precompiled_programs)
    elseif(type MATCHES "^(OBJECT|STATIC)_LIBRARY$")
      target_precompile_headers(${target} REUSE_FROM tutti_precompiled_libraries)
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(inner IN LISTS folders)
    tutti_precompile_folder(${inner})
  endforeach()
endfunction()

function(tutti_precompile)
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS)
    return()
  endif()
  set(source ${PROJECT_BINARY_DIR}/precompiled.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}  // nothing but the precompiled headers\n")
  add_library(tutti_precompiled_libraries OBJECT ${source})
  tutti_add_precompiled(tutti_precompiled_libraries tutti_fmt)
  add_executable(tutti_precompiled_programs EXCLUDE_FROM_ALL ${source})
  tutti_add_precompiled(tutti_precompiled_programs tutti_fmt)
  if(TUTTI_BUILD_TESTS)
    add_executable(tutti_precompiled_tests EXCLUDE_FROM_ALL ${source})
    target_compile_options(tutti_precompiled_tests PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${TUTTI_TEST_OPTIONS}>)
    tutti_add_precompiled(tutti_precompiled_tests GTest::gtest <gtest/gtest.h>)
  endif()
  tutti_precompile_folder(${PROJECT_SOURCE_DIR})
endfunction()
