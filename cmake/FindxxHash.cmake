# xxHash::xxhash, header only (XXH_INLINE_ALL).
find_path(xxHash_INCLUDE_DIR xxhash.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(xxHash REQUIRED_VARS xxHash_INCLUDE_DIR)
if(xxHash_FOUND AND NOT TARGET xxHash::xxhash)
  add_library(xxHash::xxhash INTERFACE IMPORTED)
  target_include_directories(xxHash::xxhash SYSTEM INTERFACE "${xxHash_INCLUDE_DIR}")
  target_compile_definitions(xxHash::xxhash INTERFACE XXH_INLINE_ALL=1)
endif()
