# Tests and how ctest knows them.
#
# tutti_add_suite(label timeout [device]): makes one GoogleTest program of tests/<label>/*.cc. `device` is the port to a GPU
# that it is linked with, tutti_device unless told. ctest gets one entry for each test
# suite of the program (not for each test: a suite with hundreds of parameters would start hundreds of processes), and the
# program writes a report of each suite, from which tools/check lists what was skipped.
#
# tutti_add_program_test(name label timeout command...): a command that ends with 0, or with 77 when it was skipped: then
# its last line says why. `label` is the folder's name, `timeout` is in seconds. The command finds the programs in
# TUTTI_BIN_DIR, and in TUTTI_TEST_PATIENCE by what to multiply times of its own.
#
# The folders under tests/ are ctest labels: ctest --preset release -L unit.

# The sanitizers make everything slower, ThreadSanitizer about tenfold; so does an emulator of another processor.
if(TUTTI_SANITIZE OR CMAKE_CROSSCOMPILING_EMULATOR)
  set(TUTTI_TEST_PATIENCE 8)
elseif(TUTTI_TEST_FRAMEWORKS)  # every rank imports them, which takes seconds of a processor
  set(TUTTI_TEST_PATIENCE 3)
else()
  set(TUTTI_TEST_PATIENCE 1)
endif()

# Suites of one thread, and long: under ThreadSanitizer nothing can show in them that the others do not.
if(TUTTI_SANITIZE MATCHES "thread")
  set(TUTTI_SKIPPED_SUITES "^(Targets/Combine|Builders/Proof|Of/Disagreement|Schedules/Mutation|Types/Convert)$")
endif()

# Of ctest's limits: twice what a test takes at most, as a machine that others use as well fails nothing that is right.
math(EXPR TUTTI_TEST_LIMIT "2 * ${TUTTI_TEST_PATIENCE}")

function(tutti_add_suite label timeout)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${label}/*.cc)
  if(NOT sources)
    return()
  endif()
  set(program tutti_${label}_tests)
  add_executable(${program} ${sources})
  set(device ${ARGN})
  if(NOT device)
    set(device tutti_device)
  endif()
  target_link_libraries(${program} PRIVATE tutti_objects ${device} tutti_test_support)

  set(listing ${CMAKE_CURRENT_BINARY_DIR}/${program}.cmake)
  math(EXPR patience "${timeout} * ${TUTTI_TEST_LIMIT}")
  add_custom_command(TARGET ${program} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${program}> -D LABEL=${label} -D TIMEOUT=${patience}
      -D REPORTS=${PROJECT_BINARY_DIR}/Testing/reports -D LISTING=${listing}
      -D "SKIPPED=${TUTTI_SKIPPED_SUITES}" -D "EMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}"
      -P ${PROJECT_SOURCE_DIR}/cmake/list_suites.cmake)
  # A program that is not built shows as a failing test, not as none.
  file(WRITE ${listing}.include "if(EXISTS \"${listing}\")\n  include(\"${listing}\")\nelse()\n"
    "  add_test(${program}_NOT_BUILT ${program}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${listing}.include)
endfunction()

# Takes from the program the files whose paths fit the expression.
function(tutti_leave_out program expression)
  get_target_property(sources ${program} SOURCES)
  list(FILTER sources EXCLUDE REGEX "${expression}")
  set_property(TARGET ${program} PROPERTY SOURCES ${sources})
endfunction()

# Takes the tests from the program whose files name nothing that has threads, or belongs to one: ThreadSanitizer would
# take long to compile them, and find nothing.
function(tutti_leave_out_threadless program)
  get_target_property(sources ${program} SOURCES)
  foreach(source IN LISTS sources)
    file(STRINGS ${source} threads LIMIT_COUNT 1
      REGEX "thread|Thread|atomic|runRanks|fork|Plane|Keeper|Reactor|Lane|Line|Sleeper|Member|Comm")
    if(source MATCHES "_test\\.cc$" AND NOT threads)
      list(REMOVE_ITEM sources ${source})
    endif()
  endforeach()
  set_property(TARGET ${program} PROPERTY SOURCES ${sources})
endfunction()

function(tutti_add_program_test name label timeout)
  add_test(NAME ${label}.${name} COMMAND ${ARGN})
  math(EXPR patience "${timeout} * ${TUTTI_TEST_LIMIT}")
  # Those that may take long start first, lest one of them be left when all others are done.
  set_tests_properties(${label}.${name} PROPERTIES LABELS ${label} TIMEOUT ${patience} SKIP_RETURN_CODE 77 COST ${timeout}
    ENVIRONMENT "TUTTI_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};TUTTI_TEST_PATIENCE=${TUTTI_TEST_PATIENCE}")
endfunction()
