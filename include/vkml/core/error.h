// Every exception vkML throws. Each message is "[operator] what is wrong, with the values. What to
// do". Python sees the same names, each also derived from the matching built-in exception.
#pragma once

#include <stdexcept>
#include <string>

namespace vkml {

/// Base of all vkML exceptions (Python: VkmlError).
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Shapes, ranks, axes or extents that do not fit (Python: also ValueError).
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A dtype the operator does not take (Python: also TypeError).
class DTypeError : public Error {
 public:
  using Error::Error;
};

/// A device that is missing, lost, or different from its partner's (Python: also RuntimeError).
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// An index outside its axis (Python: also IndexError).
class IndexError : public Error {
 public:
  using Error::Error;
};

/// An argument with an impossible value (Python: also ValueError).
class ArgumentError : public Error {
 public:
  using Error::Error;
};

/// An operator that this device cannot evaluate (Python: also NotImplementedError).
class UnsupportedError : public Error {
 public:
  using Error::Error;
};

/// Memory that the device could not give (Python: also MemoryError).
class OutOfMemoryError : public Error {
 public:
  using Error::Error;
};

/// A gradient that cannot be computed (Python: also RuntimeError).
class AutogradError : public Error {
 public:
  using Error::Error;
};

/// A name that no registered operator has (Python: also KeyError).
class UnregisteredOpError : public Error {
 public:
  using Error::Error;
};

/// A file that cannot be read, written or understood (Python: also OSError).
class FileError : public Error {
 public:
  using Error::Error;
};

/// A broken promise inside vkML: always a bug worth reporting (Python: also RuntimeError).
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace vkml
