# Compiler settings that every target of the project shares.
include(GNUInstallDirs)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)  # a program is not linked again when only the code of libtutti.so has changed

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
if(DEFINED TUTTI_OPTIMISATION) # of a build that tries another one (tests/install/compilers)
  set(optimisation ${TUTTI_OPTIMISATION})
elseif(TUTTI_SANITIZE)
  set(optimisation -O1)  # a third quicker to compile than -O2, where the sanitizers' checks are most of what runs
else()
  set(optimisation -O2)
endif()
# Twelve files at a time where nobody waits for the next build: it halves what the compilers have to do, since most code is
# of templates, and the same in each file. So two files of a folder should not give one name to different things of theirs.
if(TUTTI_SANITIZE OR DEFINED ENV{CI})
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
endif()
# Of programs of GoogleTest (cmake/precompiled.cmake): what has to be fast lies in libraries.
set(TUTTI_TEST_OPTIONS "")
if(NOT DEFINED TUTTI_OPTIMISATION AND NOT TUTTI_SANITIZE)
  set(TUTTI_TEST_OPTIONS -O1)  # a third quicker to compile
endif()
set(CMAKE_CXX_FLAGS_RELEASE "${optimisation} -g1")
set(CMAKE_C_FLAGS_RELEASE "${optimisation} -g1")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # What ccache has to overlook, and gcc to keep, for objects made with precompiled headers (cmake/precompiled.cmake).
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()

if(PROJECT_IS_TOP_LEVEL)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wshadow>")
endif()
# Warnings are errors of the compiler that everything is built with every day. Each newer one finds other things, some of
# them false alarms, and a build elsewhere must not fail by them. Nor of code that a sanitizer has rewritten: there gcc
# takes members of an empty optional, say, for uninitialised ones; nor at -O3, where it sees fmt write behind its own array.
if(PROJECT_IS_TOP_LEVEL AND NOT TUTTI_SANITIZE AND NOT TUTTI_OPTIMISATION STREQUAL "-O3" AND
   CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-Werror>")
endif()
if(TUTTI_SANITIZE)
  add_compile_options(-fsanitize=${TUTTI_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # Tests and programs compile twice as fast without, and what is worth optimising lies in libraries.
  add_compile_options("$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-O0>")
  add_link_options(-fsanitize=${TUTTI_SANITIZE})
endif()
if(TUTTI_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "The fuzzers need clang 16 or newer: tests/fuzz/run finds one, or give -DCMAKE_CXX_COMPILER=clang++-16")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
