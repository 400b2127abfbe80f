# Fails when an example prints something else than it should. Arguments (-D): TOOL, EXPECTED.
execute_process(COMMAND "${TOOL}" OUTPUT_VARIABLE found COMMAND_ERROR_IS_FATAL ANY)
file(READ "${EXPECTED}" expected)
if(NOT found STREQUAL expected)
  message(FATAL_ERROR "${TOOL} printed:\n${found}\nexpected (${EXPECTED}):\n${expected}")
endif()
