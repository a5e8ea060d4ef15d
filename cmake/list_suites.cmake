# Runs after a GoogleTest PROGRAM was built: writes LISTING, which tells ctest of each of its suites. EMULATOR runs programs
# of another processor.
execute_process(COMMAND ${EMULATOR} ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE tests RESULT_VARIABLE status TIMEOUT 60)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} could not list its tests: ${status}\n${tests}")
endif()

# A suite's line starts in the first column and ends with a dot (behind it a typed suite tells its type); its tests follow,
# indented. Suites with many tests start first, so that the last to run is a short one.
string(REPLACE ";" "," tests "${tests}")
string(REPLACE "\n" ";" lines "${tests}")
set(suites "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.")
    set(suite ${CMAKE_MATCH_1})
    list(APPEND suites ${suite})
    set(count_${suite} 0)
  elseif(line MATCHES "^  " AND NOT line MATCHES "^  DISABLED_")
    math(EXPR count_${suite} "${count_${suite}} + 1")
  endif()
endforeach()

set(script "")
set(command ${EMULATOR} ${PROGRAM})
list(JOIN command "]] [[" command)
foreach(suite IN LISTS suites)
  if(suite MATCHES "(^|/)DISABLED_" OR count_${suite} EQUAL 0)
    continue()  # what other tests start by its name
  endif()
  if(SKIPPED AND suite MATCHES "${SKIPPED}")
    continue()
  endif()
  string(REPLACE "/" "|" report "${suite}")
  string(APPEND script "add_test([[${LABEL}.${suite}]] [[${command}]] [[--gtest_filter=${suite}.*]] "
    "[[--gtest_output=xml:${REPORTS}/${LABEL}.${report}.xml]])\n"
    "set_tests_properties([[${LABEL}.${suite}]] PROPERTIES LABELS ${LABEL} TIMEOUT ${TIMEOUT} SKIP_RETURN_CODE 77 "
    "COST ${count_${suite}})\n")
endforeach()
file(WRITE ${LISTING} "${script}")
