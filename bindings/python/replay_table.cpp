#include "replay_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>
#include <utility>

namespace vkml::python {
namespace {

/// Compared by value rather than by identity.
bool is_plain(nb::handle object) {
  PyObject* const p = object.ptr();
  return p == Py_None || PyBool_Check(p) || PyLong_CheckExact(p) || PyFloat_CheckExact(p) ||
         PyUnicode_CheckExact(p) || PyBytes_CheckExact(p) || PyComplex_CheckExact(p);
}

/// The same object, or two plain values of one type that nothing can tell apart.
bool same_value(nb::handle a, nb::handle b) {
  if (a.ptr() == b.ptr()) return true;
  if (Py_TYPE(a.ptr()) != Py_TYPE(b.ptr()) || !is_plain(a)) return false;
  if (PyFloat_CheckExact(a.ptr())) {
    const double x = PyFloat_AsDouble(a.ptr());
    const double y = PyFloat_AsDouble(b.ptr());
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  }
  const int equal = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

/// For messages: a tensor's own text would compute it.
std::string text_of(nb::handle object) {
  if (is_plain(object)) return nb::cast<std::string>(nb::repr(object));
  return "another " + nb::cast<std::string>(nb::handle(Py_TYPE(object.ptr())).attr("__name__"));
}

/// container[key] of a dictionary or list, or null; a new reference.
nb::object item_of(nb::handle container, nb::handle key) {
  if (PyDict_Check(container.ptr())) {
    return nb::borrow(PyDict_GetItemWithError(container.ptr(), key.ptr()));
  }
  PyObject* item = PyObject_GetItem(container.ptr(), key.ptr());
  if (item == nullptr) PyErr_Clear();
  return nb::steal(item);
}

}  // namespace

// --- arguments

Signature::Signature(const nb::tuple& args, const nb::dict& kwargs) : modes_(modes_now()) {
  add(args);
  add(kwargs);
}

void Signature::add(nb::handle object) {
  Token token;
  if (nb::isinstance<Tensor>(object)) {
    const Tensor& tensor = nb::cast<const Tensor&>(object);
    token.kind = Kind::kTensor;
    token.tensor = signature_of(tensor);
    while (token.first < tensors_.size() && tensors_[token.first].slot() != tensor.slot())
      ++token.first;
    tensors_.push_back(tensor);
    tokens_.push_back(std::move(token));
    return;
  }
  if (PyDict_CheckExact(object.ptr())) {
    token.kind = Kind::kDict;
    token.size = PyDict_Size(object.ptr());
    tokens_.push_back(std::move(token));
    for (const auto [key, value] : nb::borrow<nb::dict>(object)) {
      Token name;
      name.kind = Kind::kKey;
      name.value = nb::borrow(key);
      tokens_.push_back(std::move(name));
      add(value);
    }
    return;
  }
  if (PyTuple_Check(object.ptr()) || PyList_CheckExact(object.ptr())) {
    token.kind = PyTuple_Check(object.ptr()) ? Kind::kTuple : Kind::kList;
    token.size = PySequence_Size(object.ptr());
    tokens_.push_back(std::move(token));
    for (const nb::handle item : object) add(item);
    return;
  }
  if (!is_plain(object) && nb::hasattr(object, "__array__")) {
    throw DTypeError(
        "[jit] an argument is " + text_of(object) +
        ", whose values would become part of the recording. Pass a tensor: vkml.tensor(array)");
  }
  token.kind = is_plain(object) ? Kind::kValue : Kind::kObject;
  token.value = nb::borrow(object);
  tokens_.push_back(std::move(token));
}

void Signature::pin(const std::vector<Tensor>& captured) {
  std::size_t index = 0;
  for (Token& token : tokens_) {
    if (token.kind != Kind::kTensor) continue;
    const Tensor& tensor = tensors_[index++];
    for (const Tensor& other : captured) {
      if (other.slot() == tensor.slot()) token.pinned = tensor;
    }
  }
}

bool Signature::matches(nb::handle args, nb::handle kwargs, std::vector<Tensor>& tensors) const {
  if (!(modes_ == modes_now())) return false;
  std::size_t next = 0;
  return match(args, next, tensors) && match(kwargs, next, tensors);
}

bool Signature::match(nb::handle object, std::size_t& next, std::vector<Tensor>& tensors) const {
  const Token& token = tokens_[next++];
  PyObject* const p = object.ptr();
  switch (token.kind) {
    case Kind::kTensor: {
      if (!nb::isinstance<Tensor>(object)) return false;
      const Tensor& tensor = *nb::inst_ptr<Tensor>(object);
      if (!(signature_of(tensor) == token.tensor)) return false;
      if (token.pinned.is_defined() && token.pinned.slot() != tensor.slot()) return false;
      std::size_t first = 0;
      while (first < tensors.size() && tensors[first].slot() != tensor.slot()) ++first;
      if (first != token.first) return false;
      tensors.push_back(tensor);
      return true;
    }
    case Kind::kDict: {
      if (!PyDict_CheckExact(p) || PyDict_Size(p) != token.size) return false;
      for (const auto [key, value] : nb::borrow<nb::dict>(object)) {
        const nb::object& expected = tokens_[next].value;
        ++next;
        if (!same_value(expected, key) || !match(value, next, tensors)) return false;
      }
      return true;
    }
    case Kind::kTuple:
    case Kind::kList: {
      const bool is_same_kind =
          token.kind == Kind::kTuple ? PyTuple_Check(p) : PyList_CheckExact(p);
      if (!is_same_kind || PySequence_Size(p) != token.size) return false;
      for (Py_ssize_t i = 0; i < token.size; ++i) {
        const nb::handle item =
            token.kind == Kind::kTuple ? PyTuple_GetItem(p, i) : PyList_GetItem(p, i);
        if (!match(item, next, tensors)) return false;
      }
      return true;
    }
    case Kind::kValue:
      return same_value(token.value, object);
    case Kind::kObject:
      return token.value.ptr() == p;
    case Kind::kKey:
      break;
  }
  return false;
}

std::string Signature::describe(const Token& token) {
  switch (token.kind) {
    case Kind::kTensor:
      return to_string(token.tensor);
    case Kind::kDict:
      return "a dict of " + std::to_string(token.size);
    case Kind::kTuple:
      return "a tuple of " + std::to_string(token.size);
    case Kind::kList:
      return "a list of " + std::to_string(token.size);
    default:
      return text_of(token.value);
  }
}

std::string Signature::difference(const Signature& other) const {
  if (!(modes_ == other.modes_)) return "gradient mode, matmul precision or default device changed";
  for (std::size_t i = 0; i < tokens_.size() && i < other.tokens_.size(); ++i) {
    const Token& a = tokens_[i];
    const Token& b = other.tokens_[i];
    const std::string was = describe(a);
    const std::string is = describe(b);
    const bool differ = a.kind != b.kind || was != is ||
                        (a.kind == Kind::kObject && a.value.ptr() != b.value.ptr());
    if (differ) return std::string("an argument is ").append(is).append(", was ").append(was);
    if (a.kind == Kind::kTensor && !(a.tensor == b.tensor)) return "strides of an argument changed";
  }
  return "the arguments changed";
}

void Signature::visit(const Visit& visit) const {
  for (const Token& token : tokens_) visit(token.value);
}

// --- guards

void Guards::visit(const Visit& visit) const {
  for (const Guard& guard : guards_) {
    for (const nb::object* object : {&guard.container, &guard.key, &guard.value}) visit(*object);
  }
}

void Guards::add_item(nb::object container, nb::object key, nb::object value,
                      std::string description) {
  guards_.push_back({Kind::kItem, std::move(container), std::move(key), std::move(value), 0,
                     std::move(description)});
}

void Guards::add_attribute(nb::object object, nb::object name, nb::object value,
                           std::string description) {
  guards_.push_back({Kind::kAttribute, std::move(object), std::move(name), std::move(value), 0,
                     std::move(description)});
}

void Guards::add_length(nb::object container, std::string description) {
  const Py_ssize_t length = PyObject_Size(container.ptr());
  guards_.push_back({Kind::kLength, std::move(container), {}, {}, length, std::move(description)});
}

nb::object Guards::Guard::now() const {
  nb::object found;
  if (kind == Kind::kItem) {
    found = item_of(container, key);
  } else {
    found = nb::steal(PyObject_GetAttr(container.ptr(), key.ptr()));
    if (!found.is_valid()) PyErr_Clear();
  }
  return found.is_valid() ? found : nb::borrow(Py_NotImplemented);
}

std::string Guards::Guard::failure() const {
  if (kind == Kind::kLength) {
    const Py_ssize_t size = PyObject_Size(container.ptr());
    if (size == length) return {};
    return description + " has " + std::to_string(size) + " entries, had " + std::to_string(length);
  }
  const nb::object found = now();
  if (same_value(value, found)) return {};
  return description + " is " + text_of(found) + ", was " + text_of(value);
}

void Guards::drop_changed() {
  std::erase_if(guards_, [](const Guard& guard) { return !guard.failure().empty(); });
}

std::string Guards::failure() const {
  for (const Guard& guard : guards_) {
    std::string failure = guard.failure();
    if (!failure.empty()) return failure;
  }
  return {};
}

// --- numbers

namespace {

Number number_of(nb::handle object) {
  if (PyFloat_Check(object.ptr())) return PyFloat_AsDouble(object.ptr());
  const long long value = PyLong_AsLongLong(object.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return static_cast<std::int64_t>(value);
}

nb::object python_number(const Number& number) {
  if (number.is_integer()) return nb::int_(number.integer());
  return nb::float_(number.floating());
}

bool is_number(nb::handle object) {
  return PyFloat_CheckExact(object.ptr()) || PyLong_CheckExact(object.ptr());
}

bool compare(const std::string& comparison, double a, double b) {
  if (comparison == "<") return a < b;
  if (comparison == "<=") return a <= b;
  if (comparison == "==") return a == b;
  return a != b;
}

}  // namespace

int NumberProgram::constant(nb::handle number) {
  Instruction instruction;
  instruction.number = number_of(number);
  code_.push_back(std::move(instruction));
  return static_cast<int>(code_.size()) - 1;
}

int NumberProgram::input(nb::object container, nb::object key, int item) {
  Instruction instruction;
  instruction.code = Code::kInput;
  nb::object value = item_of(container, key);
  if (item >= 0) value = nb::steal(PySequence_GetItem(value.ptr(), item));
  instruction.number = number_of(value);
  instruction.container = std::move(container);
  instruction.key = std::move(key);
  instruction.item = item;
  code_.push_back(std::move(instruction));
  return static_cast<int>(code_.size()) - 1;
}

int NumberProgram::operation(const std::string& name, int a, int b) {
  static constexpr std::pair<std::string_view, Code> kNames[] = {
      {"+", Code::kAdd},  {"-", Code::kSub},   {"*", Code::kMul},  {"/", Code::kDiv},
      {"**", Code::kPow}, {"neg", Code::kNeg}, {"abs", Code::kAbs}};
  Instruction instruction;
  for (const auto& [known, code] : kNames) {
    if (known == name) instruction.code = code;
  }
  instruction.a = a;
  instruction.b = b;
  code_.push_back(std::move(instruction));
  return static_cast<int>(code_.size()) - 1;
}

void NumberProgram::expect(const std::string& comparison, int a, int b, bool result) {
  expectations_.push_back({comparison, a, b, result});
}

void NumberProgram::write(nb::object container, nb::object key, int number) {
  writes_.push_back({std::move(container), std::move(key), number});
}

namespace {

/// A result of two integers stays one where a double holds it exactly.
Number from_integers(double value, bool are_integers) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (!are_integers || std::fabs(value) > kExact) return value;
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::string NumberProgram::evaluate(std::vector<Number>& numbers) const {
  numbers.clear();
  numbers.reserve(code_.size());
  for (const Instruction& instruction : code_) {
    if (instruction.code == Code::kConstant) {
      numbers.push_back(instruction.number);
      continue;
    }
    if (instruction.code == Code::kInput) {
      nb::object value = item_of(instruction.container, instruction.key);
      if (value.is_valid() && instruction.item >= 0) {
        value = nb::steal(PySequence_GetItem(value.ptr(), instruction.item));
        if (!value.is_valid()) PyErr_Clear();
      }
      if (!value.is_valid() || !is_number(value) ||
          (PyLong_CheckExact(value.ptr()) != 0) != instruction.number.is_integer()) {
        return text_of(instruction.key) + " is not the kind of number that it was";
      }
      numbers.push_back(number_of(value));
      continue;
    }
    const Number& left = numbers[static_cast<std::size_t>(instruction.a)];
    const Number& right = numbers[static_cast<std::size_t>(std::max(instruction.b, 0))];
    const double a = left.floating();
    const double b = right.floating();
    const bool are_integers = left.is_integer() && right.is_integer();
    switch (instruction.code) {
      case Code::kAdd:
        numbers.push_back(from_integers(a + b, are_integers));
        break;
      case Code::kSub:
        numbers.push_back(from_integers(a - b, are_integers));
        break;
      case Code::kMul:
        numbers.push_back(from_integers(a * b, are_integers));
        break;
      case Code::kDiv:
        if (b == 0) return "a number is divided by zero";
        numbers.emplace_back(a / b);
        break;
      case Code::kPow:
        numbers.push_back(from_integers(std::pow(a, b), are_integers && b >= 0));
        break;
      case Code::kNeg:
        numbers.push_back(from_integers(-a, left.is_integer()));
        break;
      default:
        numbers.push_back(from_integers(std::fabs(a), left.is_integer()));
        break;
    }
  }
  for (const Expectation& expectation : expectations_) {
    const double a = numbers[static_cast<std::size_t>(expectation.a)].floating();
    const double b = numbers[static_cast<std::size_t>(expectation.b)].floating();
    if (compare(expectation.comparison, a, b) == expectation.result) continue;
    return "a comparison of numbers has another result: " + std::to_string(a) + " " +
           expectation.comparison + " " + std::to_string(b);
  }
  return {};
}

void NumberProgram::write_back(const std::vector<Number>& numbers) const {
  for (const Write& write : writes_) {
    const nb::object value = python_number(numbers[static_cast<std::size_t>(write.number)]);
    if (PyObject_SetItem(write.container.ptr(), write.key.ptr(), value.ptr()) != 0) {
      throw nb::python_error();
    }
  }
}

void NumberProgram::visit(const Visit& visit) const {
  for (const Instruction& instruction : code_) {
    visit(instruction.container);
    visit(instruction.key);
  }
  for (const Write& write : writes_) {
    visit(write.container);
    visit(write.key);
  }
}

// --- results

void ResultShape::visit(const Visit& visit) const {
  visit(value_);
  for (const nb::object& key : keys_) visit(key);
  for (const ResultShape& item : items_) item.visit(visit);
}

ResultShape::ResultShape(nb::handle result, std::vector<Tensor>& tensors) {
  if (nb::isinstance<Tensor>(result)) {
    kind_ = Kind::kTensor;
    tensor_ = tensors.size();
    tensors.push_back(nb::cast<Tensor>(result));
  } else if (PyTuple_Check(result.ptr()) || PyList_CheckExact(result.ptr())) {
    kind_ = PyList_Check(result.ptr()) ? Kind::kList : Kind::kTuple;
    if (kind_ == Kind::kTuple && nb::hasattr(result, "_fields")) {
      kind_ = Kind::kNamedTuple;
      value_ = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(result.ptr())));
    }
    for (const nb::handle item : result) items_.emplace_back(item, tensors);
  } else if (PyDict_CheckExact(result.ptr())) {
    kind_ = Kind::kDict;
    for (const auto [key, value] : nb::borrow<nb::dict>(result)) {
      keys_.push_back(nb::borrow(key));
      items_.emplace_back(value, tensors);
    }
  } else {
    value_ = nb::borrow(result);
  }
}

nb::object ResultShape::build(const std::vector<nb::object>& tensors) const {
  switch (kind_) {
    case Kind::kTensor:
      return tensors[tensor_];
    case Kind::kConstant:
      return value_;
    case Kind::kDict: {
      nb::dict dict;
      for (std::size_t i = 0; i < items_.size(); ++i) dict[keys_[i]] = items_[i].build(tensors);
      return dict;
    }
    default: {
      nb::list list;
      for (const ResultShape& item : items_) list.append(item.build(tensors));
      if (kind_ == Kind::kList) return list;
      const nb::tuple tuple(list);
      return kind_ == Kind::kTuple ? nb::object(tuple) : value_(*tuple);
    }
  }
}

}  // namespace vkml::python
