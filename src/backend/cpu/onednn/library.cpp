#include "onednn/library.h"

#ifdef VKML_HAVE_ONEDNN

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>

#include "threads.h"
#include "vkml/core/environment.h"
#include "vkml/core/error.h"

namespace vkml::cpu::onednn {
namespace {

// Every function of oneDNN that vkML calls, without its prefix.
#define VKML_ONEDNN_FUNCTIONS(F)                     \
  F(version)                                         \
  F(engine_create)                                   \
  F(stream_create)                                   \
  F(memory_desc_create_with_strides)                 \
  F(memory_desc_create_with_tag)                     \
  F(memory_desc_destroy)                             \
  F(memory_desc_equal)                               \
  F(memory_desc_get_size)                            \
  F(memory_create)                                   \
  F(memory_destroy)                                  \
  F(memory_set_data_handle)                          \
  F(primitive_attr_create)                           \
  F(primitive_attr_set_scratchpad_mode)              \
  F(primitive_desc_destroy)                          \
  F(primitive_desc_query)                            \
  F(primitive_desc_query_md)                         \
  F(primitive_create)                                \
  F(primitive_destroy)                               \
  F(primitive_execute)                               \
  F(matmul_primitive_desc_create)                    \
  F(reorder_primitive_desc_create)                   \
  F(convolution_forward_primitive_desc_create)       \
  F(convolution_backward_data_primitive_desc_create) \
  F(convolution_backward_weights_primitive_desc_create)

struct Functions {
#define VKML_ONEDNN_MEMBER(name) decltype(&::dnnl_##name) name = nullptr;
  VKML_ONEDNN_FUNCTIONS(VKML_ONEDNN_MEMBER)
#undef VKML_ONEDNN_MEMBER
};

struct Library {
  Functions call;
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
  dnnl_primitive_attr_t user_scratch = nullptr;
  const dnnl_version_t* version = nullptr;
};

constexpr const char* kFileName = "libdnnl.so.3";

// The folders beside this binary and above it, and their lib folders.
void* open_beside_this_binary() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<void*>(&is_available), &here) == 0 || here.dli_fname == nullptr) {
    return nullptr;
  }
  std::error_code ignored;
  std::filesystem::path folder =
      std::filesystem::weakly_canonical(here.dli_fname, ignored).parent_path();
  constexpr int kLevels = 6;  // <prefix>/lib/pythonX.Y/site-packages/vkml/<module>
  for (int level = 0; level < kLevels && folder.has_relative_path(); ++level) {
    for (const auto& candidate : {folder / kFileName, folder / "lib" / kFileName}) {
      if (!std::filesystem::exists(candidate, ignored)) continue;
      if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    }
    folder = folder.parent_path();
  }
  return nullptr;
}

void* open_library() {
  const std::string asked = environment_text("VKML_ONEDNN");
  if (asked == "0") return nullptr;
  if (!asked.empty()) {
    void* handle = dlopen(asked.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      throw FileError(
          fmt::format("[cpu] VKML_ONEDNN names a library that does not open: {}", dlerror()));
    }
    return handle;
  }
  if (void* handle = open_beside_this_binary()) return handle;
#ifdef VKML_ONEDNN_FOLDER
  if (void* handle = dlopen((std::filesystem::path(VKML_ONEDNN_FOLDER) / kFileName).c_str(),
                            RTLD_NOW | RTLD_LOCAL)) {
    return handle;
  }
#endif
  return dlopen(kFileName, RTLD_NOW | RTLD_LOCAL);
}

bool find_functions(void* handle, Functions& call) {
  bool is_complete = true;
#define VKML_ONEDNN_FIND(name)                                                     \
  call.name = reinterpret_cast<decltype(call.name)>(dlsym(handle, "dnnl_" #name)); \
  is_complete = is_complete && call.name != nullptr;
  VKML_ONEDNN_FUNCTIONS(VKML_ONEDNN_FIND)
#undef VKML_ONEDNN_FIND
  return is_complete;
}

// Null where the library is missing, or lacks something. Never closed: its threads are OpenMP's.
Library* load() {
  void* handle = open_library();
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<Library>();
  if (!find_functions(handle, library->call)) return nullptr;
  library->version = library->call.version();
  const bool is_usable =
      library->version->major == DNNL_VERSION_MAJOR &&
      library->call.engine_create(&library->engine, dnnl_cpu, 0) == dnnl_success &&
      library->call.stream_create(&library->stream, library->engine, dnnl_stream_default_flags) ==
          dnnl_success &&
      library->call.primitive_attr_create(&library->user_scratch) == dnnl_success &&
      library->call.primitive_attr_set_scratchpad_mode(library->user_scratch,
                                                       dnnl_scratchpad_mode_user) == dnnl_success;
  return is_usable ? library.release() : nullptr;
}

Library* library() {
  static Library* const loaded = load();
  return loaded;
}

void require(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return;
  if (status == dnnl_out_of_memory) {
    throw OutOfMemoryError(fmt::format("[cpu] oneDNN ran out of memory: {}", what));
  }
  throw InternalError(
      fmt::format("[cpu] oneDNN failed with status {}: {}", static_cast<int>(status), what));
}

dnnl_data_type_t data_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return dnnl_f32;
    case DType::kBF16:
      return dnnl_bf16;
    case DType::kF16:
      return dnnl_f16;
    default:
      return dnnl_data_type_undef;
  }
}

struct Dims {
  dnnl_dims_t values{};
  explicit Dims(std::span<const std::int64_t> list) {
    for (std::size_t i = 0; i < list.size(); ++i) values[i] = list[i];
  }
};

// Drops descriptions that only the reference loops would carry out.
PrimitiveDesc accept(dnnl_status_t status, dnnl_primitive_desc_t raw) {
  if (status != dnnl_success) return nullptr;
  PrimitiveDesc desc(raw);
  const char* implementation = "";
  library()->call.primitive_desc_query(raw, dnnl_query_impl_info_str, 0,
                                       static_cast<void*>(&implementation));
  const bool is_reference = std::strncmp(implementation, "ref", 3) == 0;
  return is_reference ? nullptr : std::move(desc);
}

}  // namespace

bool is_available() { return library() != nullptr; }

void MemoryDescDeleter::operator()(dnnl_memory_desc_t desc) const {
  library()->call.memory_desc_destroy(desc);
}
void PrimitiveDescDeleter::operator()(dnnl_primitive_desc_t desc) const {
  library()->call.primitive_desc_destroy(desc);
}

MemoryDesc strided(DType dtype, std::span<const std::int64_t> dims,
                   std::span<const std::int64_t> strides) {
  dnnl_memory_desc_t desc = nullptr;
  const dnnl_status_t status = library()->call.memory_desc_create_with_strides(
      &desc, static_cast<int>(dims.size()), Dims(dims).values, data_type(dtype),
      Dims(strides).values);
  return MemoryDesc(status == dnnl_success ? desc : nullptr);
}

MemoryDesc any_layout(DType dtype, std::span<const std::int64_t> dims) {
  dnnl_memory_desc_t desc = nullptr;
  const dnnl_status_t status = library()->call.memory_desc_create_with_tag(
      &desc, static_cast<int>(dims.size()), Dims(dims).values, data_type(dtype),
      dnnl_format_tag_any);
  return MemoryDesc(status == dnnl_success ? desc : nullptr);
}

std::int64_t bytes_of(const_dnnl_memory_desc_t desc) {
  return static_cast<std::int64_t>(library()->call.memory_desc_get_size(desc));
}

bool same_layout(const_dnnl_memory_desc_t a, const_dnnl_memory_desc_t b) {
  return library()->call.memory_desc_equal(a, b) != 0;
}

PrimitiveDesc matmul(const_dnnl_memory_desc_t a, const_dnnl_memory_desc_t b,
                     const_dnnl_memory_desc_t c) {
  const Library& lib = *library();
  dnnl_primitive_desc_t desc = nullptr;
  const dnnl_status_t status =
      lib.call.matmul_primitive_desc_create(&desc, lib.engine, a, b, nullptr, c, lib.user_scratch);
  return accept(status, desc);
}

PrimitiveDesc reorder(const_dnnl_memory_desc_t from, const_dnnl_memory_desc_t to) {
  const Library& lib = *library();
  dnnl_primitive_desc_t desc = nullptr;
  const dnnl_status_t status = lib.call.reorder_primitive_desc_create(&desc, from, lib.engine, to,
                                                                      lib.engine, lib.user_scratch);
  return accept(status, desc);
}

PrimitiveDesc convolution_forward(const_dnnl_memory_desc_t input, const_dnnl_memory_desc_t weight,
                                  const_dnnl_memory_desc_t output,
                                  const ConvolutionWindow& window) {
  const Library& lib = *library();
  dnnl_primitive_desc_t desc = nullptr;
  const dnnl_status_t status = lib.call.convolution_forward_primitive_desc_create(
      &desc, lib.engine, dnnl_forward_training, dnnl_convolution_direct, input, weight, nullptr,
      output, window.strides, window.dilations, window.padding, window.padding, lib.user_scratch);
  return accept(status, desc);
}

PrimitiveDesc convolution_input_gradient(const_dnnl_memory_desc_t input,
                                         const_dnnl_memory_desc_t weight,
                                         const_dnnl_memory_desc_t output,
                                         const ConvolutionWindow& window) {
  const Library& lib = *library();
  const PrimitiveDesc hint = convolution_forward(input, weight, output, window);
  if (hint == nullptr) return nullptr;
  dnnl_primitive_desc_t desc = nullptr;
  const dnnl_status_t status = lib.call.convolution_backward_data_primitive_desc_create(
      &desc, lib.engine, dnnl_convolution_direct, input, weight, output, window.strides,
      window.dilations, window.padding, window.padding, hint.get(), lib.user_scratch);
  return accept(status, desc);
}

PrimitiveDesc convolution_weight_gradient(const_dnnl_memory_desc_t input,
                                          const_dnnl_memory_desc_t weight,
                                          const_dnnl_memory_desc_t output,
                                          const ConvolutionWindow& window) {
  const Library& lib = *library();
  const PrimitiveDesc hint = convolution_forward(input, weight, output, window);
  if (hint == nullptr) return nullptr;
  dnnl_primitive_desc_t desc = nullptr;
  const dnnl_status_t status = lib.call.convolution_backward_weights_primitive_desc_create(
      &desc, lib.engine, dnnl_convolution_direct, input, weight, nullptr, output, window.strides,
      window.dilations, window.padding, window.padding, hint.get(), lib.user_scratch);
  return accept(status, desc);
}

const_dnnl_memory_desc_t layout_of(const PrimitiveDesc& desc, dnnl_query_t argument) {
  return library()->call.primitive_desc_query_md(desc.get(), argument, 0);
}

std::int64_t scratch_bytes_of(const PrimitiveDesc& desc) {
  return bytes_of(layout_of(desc, dnnl_query_scratchpad_md));
}

Primitive::Primitive(const PrimitiveDesc& desc, std::span<const Argument> arguments) {
  const Library& lib = *library();
  require(lib.call.primitive_create(&primitive_, desc.get()), "creating a primitive");
  for (const Argument& argument : arguments) {
    dnnl_memory_t memory = nullptr;
    require(lib.call.memory_create(&memory, argument.layout, lib.engine, DNNL_MEMORY_NONE),
            "describing an argument");
    arguments_.push_back({argument.id, memory});
  }
}

Primitive::~Primitive() {
  const Library& lib = *library();
  for (const dnnl_exec_arg_t& argument : arguments_) lib.call.memory_destroy(argument.memory);
  lib.call.primitive_destroy(primitive_);
}

void Primitive::run(std::span<std::byte* const> addresses, Sharing sharing) const {
  const Library& lib = *library();
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    lib.call.memory_set_data_handle(arguments_[i].memory, addresses[i]);
  }
  limit_openmp_after_fork();
  if (sharing == Sharing::kLibrary) rest_workers();
  require(lib.call.primitive_execute(primitive_, lib.stream, static_cast<int>(arguments_.size()),
                                     arguments_.data()),
          "running a primitive");
}

}  // namespace vkml::cpu::onednn

namespace vkml::cpu {

std::string matrix_library_name() {
  const onednn::Library* library = onednn::library();
  if (library == nullptr) return "vkML's own matrix products and convolutions (no oneDNN)";
  return fmt::format("oneDNN {}.{}", library->version->major, library->version->minor);
}

}  // namespace vkml::cpu

#else

namespace vkml::cpu {

std::string matrix_library_name() {
  return "vkML's own matrix products and convolutions (built without oneDNN)";
}

}  // namespace vkml::cpu

#endif
