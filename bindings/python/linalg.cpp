// Linear algebra, under names that python/vkml/linalg.py presents.

#include "vkml/api/linalg.h"

#include "common.h"

namespace vkml::python {

void bind_linalg(nb::module_& m) {
  m.def("_linalg_solve", &linalg::solve, nb::arg("a"), nb::arg("b"), "x of a x = b.");
  m.def("_linalg_solve_triangular", &linalg::solve_triangular, nb::arg("t"), nb::arg("b"),
        nb::arg("upper"), nb::arg("unit"), "x of t x = b for a triangular t.");
  m.def("_linalg_inv", &linalg::inverse, nb::arg("a"), "The inverse.");
  m.def("_linalg_pinv", &linalg::pseudo_inverse, nb::arg("a"), nb::arg("limit"),
        "The pseudo-inverse, without singular values up to a limit.");
  m.def("_linalg_det", &linalg::determinant, nb::arg("a"), "The determinant.");
  m.def("_linalg_cholesky", &linalg::cholesky, nb::arg("a"), "L of a = L L^T.");
  m.def(
      "_linalg_slogdet",
      [](const Tensor& a) {
        const auto [sign, logarithm] = linalg::slogdet(a);
        return nb::make_tuple(sign, logarithm);
      },
      nb::arg("a"), "(sign, log |det|).");
  m.def(
      "_linalg_qr",
      [](const Tensor& a) {
        const auto [q, r] = linalg::qr(a);
        return nb::make_tuple(q, r);
      },
      nb::arg("a"), "(Q, R), reduced.");
  m.def("_linalg_complement", &linalg::complement, nb::arg("q"),
        "Orthonormal columns that complete those of q to a basis.");
  m.def(
      "_linalg_eigh",
      [](const Tensor& a) {
        const auto [w, v] = linalg::eigh(a);
        return nb::make_tuple(w, v);
      },
      nb::arg("a"), "(eigenvalues, eigenvectors) of symmetric matrices.");
  m.def(
      "_linalg_svd",
      [](const Tensor& a) {
        const auto [u, s, vt] = linalg::svd(a);
        return nb::make_tuple(u, s, vt);
      },
      nb::arg("a"), "(U, S, V^T), reduced.");
}

}  // namespace vkml::python
