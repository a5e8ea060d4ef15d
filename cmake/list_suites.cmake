# Runs after a GoogleTest PROGRAM was built: writes LISTING, which tells ctest of each of its suites.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE tests RESULT_VARIABLE status TIMEOUT 60)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} could not list its tests: ${status}\n${tests}")
endif()

# A suite's line starts in the first column and ends with a dot; what a typed suite's type is stands behind it.
string(REGEX MATCHALL "(^|\n)[A-Za-z0-9_/]+\\.( |\n)" suites "${tests}")
set(script "")
foreach(suite IN LISTS suites)
  string(REGEX MATCH "[A-Za-z0-9_/]+" suite "${suite}")
  if(suite MATCHES "(^|/)DISABLED_")
    continue()
  endif()
  string(REPLACE "/" "|" report "${suite}")
  string(APPEND script "add_test([[${LABEL}.${suite}]] [[${PROGRAM}]] [[--gtest_filter=${suite}.*]] "
    "[[--gtest_output=xml:${REPORTS}/${LABEL}.${report}.xml]])\n"
    "set_tests_properties([[${LABEL}.${suite}]] PROPERTIES LABELS ${LABEL} TIMEOUT ${TIMEOUT} SKIP_RETURN_CODE 77)\n")
endforeach()
file(WRITE ${LISTING} "${script}")
