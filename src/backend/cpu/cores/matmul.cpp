#include "cores/matmul.h"

#include "cores/core_result.h"
#include "cores/gemm.h"
#include "threads.h"

namespace vkml::cpu {
namespace {

using dispatch::Kernel;
using dispatch::Operand;

// The plain blocked product, for every type and stride.
class BlockedMatmul final : public CompiledKernel {
 public:
  BlockedMatmul(const Kernel& kernel, const dispatch::ExecutionGraph& graph)
      : a_(kernel.core_inputs[0]),
        b_(kernel.core_inputs[1]),
        space_(kernel.space),
        result_(kernel, graph.buffers, TargetLayout::kAnyStrides) {}

  void run(const RunContext& run) override {
    const std::int64_t batches = space_[0] * space_[1];
    const std::int64_t m = space_[2];
    const std::int64_t n = space_[3];
    if (batches * m * n > 0) {
      // Many small products: a thread takes whole ones.
      const bool by_batch = batches >= thread_count() && batches > 1;
      parallel_shares(batches, by_batch && worth_threads(cost()),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t batch = begin; batch < end; ++batch) {
                          multiply(run, batch, !by_batch);
                        }
                      });
    }
    result_.finish(run);
  }

 private:
  double cost() const {
    constexpr double kNanosecondsPerProduct = 0.04;
    return kNanosecondsPerProduct * static_cast<double>(dispatch::numel(space_)) *
           static_cast<double>(a_.extents[3]);
  }

  static std::int64_t batch_offset(const Operand& operand, std::int64_t b0, std::int64_t b1) {
    return operand.offset + b0 * operand.strides[0] + b1 * operand.strides[1];
  }

  static MatrixView view(const Operand& operand, const RunContext& run, std::int64_t b0,
                         std::int64_t b1) {
    return {run.buffers[operand.buffer] +
                batch_offset(operand, b0, b1) * static_cast<std::int64_t>(size_of(operand.dtype)),
            operand.dtype, operand.strides[2], operand.strides[3]};
  }

  void multiply(const RunContext& run, std::int64_t batch, bool parallel) const {
    const std::int64_t b0 = batch / space_[1];
    const std::int64_t b1 = batch % space_[1];
    const Operand& target = result_.target();
    const GemmTarget c{
        run.buffers[target.buffer] +
            batch_offset(target, b0, b1) * static_cast<std::int64_t>(size_of(target.dtype)),
        target.dtype, target.strides[2], target.strides[3]};
    gemm(view(a_, run, b0, b1), view(b_, run, b0, b1), c, space_[2], space_[3], a_.extents[3],
         parallel);
  }

  Operand a_;
  Operand b_;
  dispatch::Extents space_;
  CoreResult result_;
};

}  // namespace

std::unique_ptr<CompiledKernel> compile_matmul(const Kernel& kernel,
                                               const dispatch::ExecutionGraph& graph) {
  return std::make_unique<BlockedMatmul>(kernel, graph);
}

}  // namespace vkml::cpu
