#include "cores/index_check.h"

#include "cores/dense_copy.h"
#include "threads.h"

namespace vkml::cpu {
namespace {

using dispatch::Kernel;
using ops::CoreKind;

template <typename Index>
void check_rows(const IndexCheck& check, const dispatch::Extents& extents, const Index* data,
                Status& status, std::int64_t begin, std::int64_t end) {
  const auto& strides = check.index.strides;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t at2 = row % extents[2];
    const std::int64_t at1 = row / extents[2] % extents[1];
    const std::int64_t at0 = row / extents[2] / extents[1];
    const Index* indices = data + at0 * strides[0] + at1 * strides[1] + at2 * strides[2];
    for (std::int64_t i = 0; i < extents[3]; ++i) {
      const std::int64_t index = indices[i * strides[3]];
      if (index >= 0 && index < check.extent) continue;
      status.report({check.site, index, row * extents[3] + i});
      return;
    }
  }
}

}  // namespace

bool IndexCheck::run(const RunContext& run) const {
  if (dispatch::numel(index.extents) == 0) return true;
  dispatch::Extents extents = index.extents;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (index.strides[i] == 0) extents[i] = 1;  // the same index again
  }
  const std::byte* data = address_of(index, run);
  const std::int64_t rows = extents[0] * extents[1] * extents[2];
  constexpr double kNanosecondsPerIndex = 0.5;
  const bool parallel =
      worth_threads(kNanosecondsPerIndex * static_cast<double>(dispatch::numel(extents)));
  parallel_shares(rows, parallel, [&](std::int64_t begin, std::int64_t end) {
    if (index.dtype == DType::kI64) {
      check_rows(*this, extents, reinterpret_cast<const std::int64_t*>(data), *run.status, begin,
                 end);
    } else {
      check_rows(*this, extents, reinterpret_cast<const std::int32_t*>(data), *run.status, begin,
                 end);
    }
  });
  return !run.status->failed();
}

IndexCheck index_check_of(const Kernel& kernel) {
  const auto axis = static_cast<std::size_t>(kernel.attributes[0]);
  IndexCheck check;
  check.index = kernel.core_inputs[1];
  check.site = kernel.core_site;
  check.extent =
      kernel.kind == CoreKind::kGather ? kernel.core_inputs[0].extents[axis] : kernel.space[axis];
  return check;
}

}  // namespace vkml::cpu
