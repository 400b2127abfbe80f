# VulkanHeaders::VulkanHeaders: headers alone; the loader is opened at run time.
find_path(VulkanHeaders_INCLUDE_DIR vulkan/vulkan_core.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(VulkanHeaders REQUIRED_VARS VulkanHeaders_INCLUDE_DIR)
if(VulkanHeaders_FOUND AND NOT TARGET VulkanHeaders::VulkanHeaders)
  add_library(VulkanHeaders::VulkanHeaders INTERFACE IMPORTED)
  target_include_directories(VulkanHeaders::VulkanHeaders SYSTEM INTERFACE
    "${VulkanHeaders_INCLUDE_DIR}")
  target_compile_definitions(VulkanHeaders::VulkanHeaders INTERFACE VK_NO_PROTOTYPES=1)
endif()
