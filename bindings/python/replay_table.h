// The parts of a recorded call that Python sees: its arguments, the Python values that it depends
// on, the numbers that it computes with, and the shape of its results. Checked and computed here,
// without running Python code, at each replay.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common.h"
#include "vkml/api/call_signature.h"

namespace vkml::python {

/// Shows the garbage collector one Python object.
using Visit = std::function<void(nb::handle)>;

/// The arguments of a call: nested lists, tuples and dictionaries of tensors and of other values.
/// Tensors are told apart by shape, strides, dtype and device; numbers, strings, booleans and None
/// by value; all others by identity.
class Signature {
 public:
  Signature(const nb::tuple& args, const nb::dict& kwargs);
  /// Whether a call has this signature. Its tensors then, in order.
  bool matches(nb::handle args, nb::handle kwargs, std::vector<Tensor>& tensors) const;
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// A tensor that the function also captures must be that very one.
  void pin(const std::vector<Tensor>& captured);
  /// What differs between this call and another, for people.
  std::string difference(const Signature& other) const;
  /// Forgets the tensors: a table of signatures keeps none alive.
  void forget_tensors() { tensors_.clear(); }
  void visit(const Visit& visit) const;

 private:
  enum class Kind : std::uint8_t { kList, kTuple, kDict, kKey, kTensor, kValue, kObject };
  struct Token {
    Kind kind = Kind::kValue;
    Py_ssize_t size = 0;  // of a container
    nb::object value;     // a key, a value, an object
    TensorSignature tensor;
    std::size_t first = 0;  // the first tensor that is the same
    Tensor pinned;
  };
  void add(nb::handle object);
  bool match(nb::handle object, std::size_t& next, std::vector<Tensor>& tensors) const;
  static std::string describe(const Token& token);

  std::vector<Token> tokens_;
  std::vector<Tensor> tensors_;
  CallModes modes_;
};

/// Python values outside the arguments that a recording depends on.
class Guards {
 public:
  /// `container[key]`, an item of a dictionary or list, is `value`, or equals it if it is a number,
  /// a string, a boolean or None. A value that is not there is NotImplemented.
  void add_item(nb::object container, nb::object key, nb::object value, std::string description);
  /// The same for an attribute.
  void add_attribute(nb::object object, nb::object name, nb::object value, std::string description);
  void add_length(nb::object container, std::string description);
  /// Drops what the recorded function has changed itself: a counter is no reason to record again.
  void drop_changed();
  /// What has changed, empty when nothing has.
  std::string failure() const;
  void visit(const Visit& visit) const;

 private:
  enum class Kind : std::uint8_t { kItem, kAttribute, kLength };
  struct Guard {
    Kind kind = Kind::kItem;
    nb::object container, key, value;
    Py_ssize_t length = 0;
    std::string description;

    /// The value now, NotImplemented where there is none.
    nb::object now() const;
    /// What has changed, empty when nothing has.
    std::string failure() const;
  };
  std::vector<Guard> guards_;
};

/// Arithmetic on Python numbers that is done anew at each replay, in double precision as Python
/// does. Numbers are known by their index.
class NumberProgram {
 public:
  int constant(nb::handle number);
  /// Read from container[key], or from container[key][item] if item >= 0.
  int input(nb::object container, nb::object key, int item);
  /// One of "+", "-", "*", "/", "**", "neg", "abs"; b is ignored for the last two.
  int operation(const std::string& name, int a, int b);
  /// The comparison ("<", "<=", "==", "!=") must have this result at each replay.
  void expect(const std::string& comparison, int a, int b, bool result);
  /// After the run, container[key] = number.
  void write(nb::object container, nb::object key, int number);

  /// Computes all numbers; what stops the replay, empty when nothing does.
  std::string evaluate(std::vector<Number>& numbers) const;
  void write_back(const std::vector<Number>& numbers) const;
  void visit(const Visit& visit) const;

 private:
  enum class Code : std::uint8_t { kConstant, kInput, kAdd, kSub, kMul, kDiv, kPow, kNeg, kAbs };
  struct Instruction {
    Code code = Code::kConstant;
    int a = -1, b = -1;
    Number number = 0.0;  // constants; of inputs, whether they are integers
    nb::object container, key;
    int item = -1;
  };
  struct Expectation {
    std::string comparison;
    int a = -1, b = -1;
    bool result = false;
  };
  struct Write {
    nb::object container, key;
    int number = -1;
  };
  std::vector<Instruction> code_;
  std::vector<Expectation> expectations_;
  std::vector<Write> writes_;
};

/// The results of a call: nested tuples, lists and dictionaries with tensors in their places.
class ResultShape {
 public:
  /// Collects the tensors of a result.
  ResultShape(nb::handle result, std::vector<Tensor>& tensors);
  nb::object build(const std::vector<nb::object>& tensors) const;
  void visit(const Visit& visit) const;

 private:
  enum class Kind : std::uint8_t { kTensor, kTuple, kList, kDict, kNamedTuple, kConstant };
  Kind kind_ = Kind::kConstant;
  std::size_t tensor_ = 0;
  nb::object value_;              // a constant, a named tuple's type
  std::vector<nb::object> keys_;  // of a dictionary
  std::vector<ResultShape> items_;
};

}  // namespace vkml::python
