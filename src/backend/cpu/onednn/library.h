// oneDNN, opened at run time where it is found: the only door to it.
//
// Looked for at VKML_ONEDNN (`0`: not at all), beside the binary that holds vkML and in the lib
// folders of its prefixes (so that a wheel finds the one that pip installed), where its headers
// were found at build time, and then wherever the system looks. Its threads are libgomp's.
#pragma once

#include <string>

#ifdef VKML_HAVE_ONEDNN

#include <oneapi/dnnl/dnnl.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vkml/core/dtype.h"

namespace vkml::cpu::onednn {

/// Whether the library is there, and of a version that its headers describe.
bool is_available();

struct MemoryDescDeleter {
  void operator()(dnnl_memory_desc_t desc) const;
};
using MemoryDesc = std::unique_ptr<dnnl_memory_desc, MemoryDescDeleter>;

/// Strides are in elements. Null where oneDNN has no such layout.
MemoryDesc strided(DType dtype, std::span<const std::int64_t> dims,
                   std::span<const std::int64_t> strides);
/// The layout is left to the primitive.
MemoryDesc any_layout(DType dtype, std::span<const std::int64_t> dims);
std::int64_t bytes_of(const_dnnl_memory_desc_t desc);
bool same_layout(const_dnnl_memory_desc_t a, const_dnnl_memory_desc_t b);

struct PrimitiveDescDeleter {
  void operator()(dnnl_primitive_desc_t desc) const;
};
/// What a primitive will do. Null where oneDNN has no fast way to do it (its reference loops are
/// slower than ours).
using PrimitiveDesc = std::unique_ptr<dnnl_primitive_desc, PrimitiveDescDeleter>;

PrimitiveDesc matmul(const_dnnl_memory_desc_t a, const_dnnl_memory_desc_t b,
                     const_dnnl_memory_desc_t c);
PrimitiveDesc reorder(const_dnnl_memory_desc_t from, const_dnnl_memory_desc_t to);

struct ConvolutionWindow {
  dnnl_dims_t strides{};
  dnnl_dims_t dilations{};  // 0: none
  dnnl_dims_t padding{};
};
PrimitiveDesc convolution_forward(const_dnnl_memory_desc_t input, const_dnnl_memory_desc_t weight,
                                  const_dnnl_memory_desc_t output, const ConvolutionWindow& window);
PrimitiveDesc convolution_input_gradient(const_dnnl_memory_desc_t input,
                                         const_dnnl_memory_desc_t weight,
                                         const_dnnl_memory_desc_t output,
                                         const ConvolutionWindow& window);
PrimitiveDesc convolution_weight_gradient(const_dnnl_memory_desc_t input,
                                          const_dnnl_memory_desc_t weight,
                                          const_dnnl_memory_desc_t output,
                                          const ConvolutionWindow& window);

/// The layout that a primitive wants for an argument (dnnl_query_src_md, ...).
const_dnnl_memory_desc_t layout_of(const PrimitiveDesc& desc, dnnl_query_t argument);
/// Working memory, given as argument DNNL_ARG_SCRATCHPAD.
std::int64_t scratch_bytes_of(const PrimitiveDesc& desc);

/// Who shares the work of a primitive out to threads: the library, or who calls it on several.
enum class Sharing : std::uint8_t { kLibrary, kCaller };

/// A primitive with its arguments, whose addresses are given at each run.
class Primitive {
 public:
  struct Argument {
    int id = 0;  // DNNL_ARG_*
    const_dnnl_memory_desc_t layout = nullptr;
  };
  Primitive(const PrimitiveDesc& desc, std::span<const Argument> arguments);
  ~Primitive();
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  /// `addresses` are parallel to the arguments. Not from two threads at once.
  void run(std::span<std::byte* const> addresses, Sharing sharing = Sharing::kLibrary) const;

 private:
  dnnl_primitive_t primitive_ = nullptr;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace vkml::cpu::onednn

#endif

namespace vkml::cpu {

/// "oneDNN 3.2", or what serves where it is missing; for people.
std::string matrix_library_name();

}  // namespace vkml::cpu
