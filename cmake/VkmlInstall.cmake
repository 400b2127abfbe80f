# Installs headers, libraries and what find_package(vkml) reads.
include(CMakePackageConfigHelpers)

set(destination "${CMAKE_INSTALL_LIBDIR}/cmake/vkml")
get_property(layers GLOBAL PROPERTY VKML_LAYERS)

install(TARGETS ${layers} vkml EXPORT vkml-targets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/vkml" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT cpp FILES_MATCHING PATTERN "*.h")
install(EXPORT vkml-targets NAMESPACE vkml:: DESTINATION "${destination}" COMPONENT cpp)

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/vkml-config.cmake.in"
                              "${PROJECT_BINARY_DIR}/vkml-config.cmake"
                              INSTALL_DESTINATION "${destination}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/vkml-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/vkml-config.cmake"
              "${PROJECT_BINARY_DIR}/vkml-config-version.cmake"
        DESTINATION "${destination}" COMPONENT cpp)
