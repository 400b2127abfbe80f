// Tensor: a handle to a value in a lazy graph.
//
// Copies of a Tensor are names of one value: assigning through one is seen by all. Operators (in
// functions.h) record; a value is computed when something observes it: to_host(), item(),
// backward() or realize().
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "vkml/core/device.h"
#include "vkml/core/dtype.h"
#include "vkml/core/error.h"
#include "vkml/core/shape.h"
#include "vkml/core/storage.h"

namespace vkml {

namespace graph {
class Node;
class Value;
}  // namespace graph

class Slot;

/// Extents or axes: Tensor::reshape({2, -1}).
using Extents = std::vector<std::int64_t>;

/// One part of an index: x[1], x[1:5:2], x[None], x[...].
struct IndexSlice {
  std::optional<std::int64_t> start, stop;
  std::int64_t step = 1;
};
struct IndexNewAxis {};
struct IndexEllipsis {};
using IndexPart = std::variant<std::int64_t, IndexSlice, IndexNewAxis, IndexEllipsis>;
using Index = std::vector<IndexPart>;

class Tensor {
 public:
  /// No value. Anything but assignment to it and is_defined() throws ArgumentError.
  Tensor();
  ~Tensor();
  Tensor(const Tensor&);
  Tensor(Tensor&&) noexcept;
  Tensor& operator=(const Tensor&);
  Tensor& operator=(Tensor&&) noexcept;

  /// A float, an int or a bool that yields to other operands' dtypes, on the default device.
  Tensor(double value);        // NOLINT(google-explicit-constructor)
  Tensor(float value);         // NOLINT(google-explicit-constructor)
  Tensor(std::int64_t value);  // NOLINT(google-explicit-constructor)
  Tensor(int value);           // NOLINT(google-explicit-constructor)
  Tensor(bool value);          // NOLINT(google-explicit-constructor)

  /// Copies `bytes`, elements of `dtype` in row-major order. Throws ShapeError when they do not
  /// fill the extents.
  static Tensor from_host(std::span<const std::byte> bytes, const Extents& extents, DType dtype,
                          Device device);
  /// Copies f32 values.
  static Tensor from_values(std::span<const float> values, const Extents& extents,
                            Device device = kCpu);
  /// Shows memory that somebody else owns, without a copy: the element of index 0 lies `offset`
  /// bytes into the storage, the others at the shape's strides. The storage is held until it is
  /// unused; its deleter tells the owner.
  static Tensor from_shared(StoragePtr storage, std::int64_t offset, const Shape& shape,
                            DType dtype);

  bool is_defined() const { return slot_ != nullptr; }
  Shape shape() const;
  Extents extents() const;
  int rank() const { return shape().rank(); }
  std::int64_t numel() const { return shape().numel(); }
  std::int64_t size(std::int64_t axis) const;
  DType dtype() const;
  Device device() const;
  bool is_contiguous() const;
  /// Whether the value is already computed (submitted, on devices that run ahead of the host).
  bool is_computed() const;

  /// Computes the value now. Returns this tensor.
  const Tensor& realize() const;
  /// The elements in row-major order. Waits; throws what the computation threw.
  std::vector<std::byte> to_host() const;
  /// The same as f32.
  std::vector<float> to_floats() const;
  /// The only element, as a number. Throws ShapeError when there is not exactly one.
  double item() const;
  std::int64_t item_integer() const;
  /// The computed value's memory: storage and byte offset of the first element, and what lies
  /// there, which the tensor may not show any more when another thread assigns to it. Computes
  /// first.
  struct Memory {
    StoragePtr storage;
    std::int64_t offset = 0;
    Shape shape;
    DType dtype = DType::kF32;
  };
  /// Computes the value. With `is_exported` vkML never writes to this memory again: somebody else
  /// reads it.
  Memory memory(bool is_exported = false) const;

  // Autograd.
  bool requires_grad() const;
  /// Whether gradients collect here: made by a user, not by an operator on something recorded.
  bool is_leaf() const;
  /// Makes this tensor a leaf whose gradients collect in grad(). Throws AutogradError on a tensor
  /// that an operator recorded, DTypeError unless floating.
  Tensor& requires_grad_(bool requires_grad = true);
  /// The collected gradient, undefined when there is none.
  Tensor grad() const;
  void set_grad(const Tensor& gradient);
  /// Adds the gradient of this tensor with respect to every leaf below it to that leaf's grad().
  /// `gradient` defaults to 1 for one element. Submits forward and backward as one graph.
  void backward(const Tensor& gradient = {}, bool retain_graph = false,
                bool create_graph = false) const;
  /// The same value, with no gradient to this one. Of a leaf, and of what recorded no gradients, it
  /// is an alias: assigning through either is seen by both. Of what an operator recorded it is a
  /// value of its own, which does not keep the record alive.
  Tensor detach() const;
  /// The value of now, with no gradient to this one: what is assigned later does not reach it, nor
  /// does what is assigned to it reach this one. Takes memory only once one of both changes.
  Tensor snapshot() const;

  /// The value of now, gradients included, by a name of its own: for a look at it that others may
  /// not disturb by assigning.
  Tensor pinned() const;

  /// Replaces the value: every copy of this tensor sees it, values recorded before keep the old
  /// one. The value must match in shape, dtype and device, and this tensor must be contiguous. A
  /// leaf stays a leaf. Throws ShapeError, DTypeError, DeviceError; nothing has changed then.
  Tensor& assign_(const Tensor& value);

  /// assign_ for x op= y: casts to this dtype, and takes non-contiguous views too. Throws
  /// AutogradError on a leaf while gradients are recorded.
  Tensor& update_(const Tensor& value);

  /// update_ with any dtype, any device, and broadcasting to this shape.
  Tensor& copy_(const Tensor& value);

  /// Shows another value from now on, which may have another dtype or device. Values recorded
  /// before keep the old one; a leaf stays a leaf, with the gradients that they still bring, and
  /// drops a gradient of another dtype or device. Throws ShapeError, and AutogradError for what an
  /// operator recorded; nothing has changed then.
  Tensor& set_data(const Tensor& value);

  /// A view, with Python's meaning of every part. Throws IndexError.
  Tensor index(const Index& index) const;
  /// x[index] = value, with broadcasting; leading extents of 1 that the window lacks are dropped.
  /// Throws IndexError, ShapeError, and AutogradError on a leaf while gradients are recorded.
  void index_put_(const Index& index, const Tensor& value);

  // Arithmetic with numbers and tensors; the functions are in functions.h.
  Tensor operator-() const;
  Tensor& operator+=(const Tensor& other);
  Tensor& operator-=(const Tensor& other);
  Tensor& operator*=(const Tensor& other);
  Tensor& operator/=(const Tensor& other);

  /// Values, abridged when there are many, and dtype and device: what Python prints. Computes them.
  std::string to_string() const;

  // For the layers above: handles to the graph.
  explicit Tensor(std::shared_ptr<Slot> slot);
  explicit Tensor(const graph::Value& value);
  explicit Tensor(graph::Value&& value);
  /// The current node, as a value.
  graph::Value value() const;
  const std::shared_ptr<Slot>& slot() const { return slot_; }

 private:
  std::shared_ptr<Slot> slot_;
};

Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
/// A constant power of two divides by its exact reciprocal.
Tensor operator/(const Tensor& a, const Tensor& b);
/// a to the power b, as Python's **: of floats and the constant 2 the square.
Tensor power(const Tensor& a, const Tensor& b);

/// Computes several tensors of one device as one graph. Throws DeviceError for more devices.
void realize(std::span<const Tensor> tensors);
/// Computes several tensors, those of each device as one graph.
void realize_by_device(std::span<const Tensor> tensors);

/// Gradients of `output` with respect to `inputs`, without touching grad(). Undefined where output
/// does not depend on an input. Unless the graph is retained, or recorded further, a second pass
/// through it throws AutogradError.
std::vector<Tensor> gradients(const Tensor& output, std::span<const Tensor> inputs,
                              const Tensor& gradient = {}, bool retain_graph = false,
                              bool create_graph = false);

/// What realize() would run, as text.
std::string explain(const Tensor& tensor);

}  // namespace vkml
