# DnnlHeaders::DnnlHeaders: oneDNN's headers (onednn-devel-cpu-gomp, libdnnl-dev).
find_path(DnnlHeaders_INCLUDE_DIR oneapi/dnnl/dnnl.h)
if(DnnlHeaders_INCLUDE_DIR)
  file(STRINGS "${DnnlHeaders_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" lines
       REGEX "#define DNNL_VERSION_(MAJOR|MINOR) ")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  list(JOIN numbers "." DnnlHeaders_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(DnnlHeaders REQUIRED_VARS DnnlHeaders_INCLUDE_DIR
                                  VERSION_VAR DnnlHeaders_VERSION)
if(DnnlHeaders_FOUND AND NOT TARGET DnnlHeaders::DnnlHeaders)
  add_library(DnnlHeaders::DnnlHeaders INTERFACE IMPORTED)
  target_include_directories(DnnlHeaders::DnnlHeaders SYSTEM INTERFACE "${DnnlHeaders_INCLUDE_DIR}")
  target_compile_definitions(DnnlHeaders::DnnlHeaders INTERFACE VKML_HAVE_ONEDNN=1)
  # Where the library lies when it was installed with the headers: for builds that are not installed.
  get_filename_component(prefix "${DnnlHeaders_INCLUDE_DIR}" DIRECTORY)
  target_compile_definitions(DnnlHeaders::DnnlHeaders INTERFACE VKML_ONEDNN_FOLDER="${prefix}/lib")
endif()
