# Adds the prefixes of packages that pip installed (SPIR-V headers, oneDNN headers) to the search path.
#
# The interpreter is asked, not guessed: inside pip's isolated builds the packages lie in an overlay
# that only its sys.path knows.
if(NOT Python_EXECUTABLE)
  find_package(Python 3.10 COMPONENTS Interpreter QUIET)
endif()
if(Python_EXECUTABLE)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c [==[
import pathlib, sys
found = []
for entry in map(pathlib.Path, sys.path):
    if entry.name in ("site-packages", "dist-packages"):
        found += [entry / "cmeel.prefix", entry.parents[2]]
print(";".join(str(path) for path in found if path.is_dir()), end="")
]==]
    OUTPUT_VARIABLE prefixes
    ERROR_QUIET)
  list(APPEND CMAKE_PREFIX_PATH ${prefixes})
  list(REMOVE_DUPLICATES CMAKE_PREFIX_PATH)
  unset(prefixes)
endif()
