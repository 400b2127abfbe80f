# Installs a built vkML into an empty folder, then configures, builds and runs the project beside
# this file against it. Arguments (-D): VKML_BINARY_DIR, WORK_DIR, CXX_COMPILER.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " line)
    message(FATAL_ERROR "failed (${result}): ${line}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
run("${CMAKE_COMMAND}" --install "${VKML_BINARY_DIR}" --prefix "${WORK_DIR}/prefix" --component cpp)
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK_DIR}/build" -G Ninja
    "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}")
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build")
execute_process(COMMAND "${WORK_DIR}/build/uses_vkml" OUTPUT_VARIABLE output
                COMMAND_ERROR_IS_FATAL ANY)
if(NOT output MATCHES "1\\.0000, 2\\.0000, 3\\.0000")
  message(FATAL_ERROR "uses_vkml printed \"${output}\"")
endif()

# The examples are such a project too.
set(examples "${CMAKE_CURRENT_LIST_DIR}/../../examples/cpp")
run("${CMAKE_COMMAND}" -S "${examples}" -B "${WORK_DIR}/examples" -G Ninja
    "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}")
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/examples")
execute_process(COMMAND "${WORK_DIR}/examples/mlp" --data /nowhere RESULT_VARIABLE result
                ERROR_VARIABLE error)
if(result EQUAL 0 OR NOT error MATCHES "cannot open /nowhere")
  message(FATAL_ERROR "mlp without data ended with ${result} and said \"${error}\"")
endif()
if(EXISTS /usr/share/datasets/fashion-mnist)
  execute_process(COMMAND "${WORK_DIR}/examples/mlp" --epochs 1 OUTPUT_VARIABLE output
                  COMMAND_ERROR_IS_FATAL ANY)
  if(NOT output MATCHES "test accuracy: 8[0-9]\\.[0-9] %")
    message(FATAL_ERROR "mlp printed \"${output}\"")
  endif()
endif()
