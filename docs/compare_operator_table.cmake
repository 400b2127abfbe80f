# Fails when docs/operators.md is not what the table says now. Arguments (-D): TOOL, DOCUMENT.
execute_process(COMMAND "${TOOL}" OUTPUT_VARIABLE expected COMMAND_ERROR_IS_FATAL ANY)
file(READ "${DOCUMENT}" found)
if(NOT found STREQUAL expected)
  message(FATAL_ERROR "docs/operators.md is out of date. Write it again: ${TOOL} > ${DOCUMENT}")
endif()
