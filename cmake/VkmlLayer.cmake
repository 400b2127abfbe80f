# vkml_layer(<folder> DEPENDS ... [PRIVATE_DEPENDS ...] [HEADER_DEPENDS ...])
#
# The static library of one layer: every source under src/<folder>. Its public headers are reached
# through a folder that holds this layer's headers alone, so that a file sees the headers of its own
# layer and of those it links to; including a layer above does not compile. PRIVATE_DEPENDS are
# linked by whoever uses an installed vkML; HEADER_DEPENDS are needed to build this layer only.
add_library(vkml_options INTERFACE)
target_compile_options(vkml_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${VKML_WARNINGS_AS_ERRORS}>:-Werror>
  # No contraction but written fma: results agree across devices and compilers.
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False positives of GCC 12 and 13 in inlined standard containers. Later ones show them, as
  # warnings.
  set(silence "no-error=")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    set(silence "no-")
  endif()
  foreach(warning maybe-uninitialized array-bounds stringop-overflow restrict stringop-overread
          free-nonheap-object)
    target_compile_options(vkml_options INTERFACE "-W${silence}${warning}")
  endforeach()
endif()
if(VKML_SANITIZE)
  target_compile_options(vkml_options INTERFACE -fsanitize=${VKML_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(vkml_options INTERFACE -fsanitize=${VKML_SANITIZE})
endif()

function(vkml_layer folder)
  cmake_parse_arguments(LAYER "" "" "DEPENDS;PRIVATE_DEPENDS;HEADER_DEPENDS" ${ARGN})
  string(REPLACE "/" "_" suffix ${folder})
  set(target vkml_${suffix})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${folder}/*.cpp")
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:vkml_options>)
    if(LAYER_PRIVATE_DEPENDS)
      target_link_libraries(${target} PRIVATE ${LAYER_PRIVATE_DEPENDS})
    endif()
    foreach(dependency ${LAYER_HEADER_DEPENDS})
      target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${dependency}>)
    endforeach()
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src/${folder}")
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(${target} ${scope} ${LAYER_DEPENDS})
  target_compile_features(${target} ${scope} cxx_std_20)

  set(public "${PROJECT_SOURCE_DIR}/include/vkml/${folder}")
  if(EXISTS "${public}")
    set(view "${PROJECT_BINARY_DIR}/layers/${suffix}")
    get_filename_component(parent "${view}/vkml/${folder}" DIRECTORY)
    file(MAKE_DIRECTORY "${parent}")
    if(NOT EXISTS "${view}/vkml/${folder}")
      file(CREATE_LINK "${public}" "${view}/vkml/${folder}" SYMBOLIC)
    endif()
    target_include_directories(${target} ${scope}
      $<BUILD_INTERFACE:${view}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${suffix})
  add_library(vkml::${suffix} ALIAS ${target})
  set_property(GLOBAL APPEND PROPERTY VKML_LAYERS ${target})
endfunction()
