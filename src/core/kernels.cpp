// Operations compiled for one instruction set: a Python module that holds the address of their table, nothing else.
#include <Python.h>

#include "operations.hpp"

namespace {

using namespace nonneg;

template <class T, class I>
constexpr IndexedOperations<T, I> indexed{&hals_listed<T, I>,
                                          &listed_grams<T, I>,
                                          &csr_times<T, I, I>,
                                          &csr_sampled_product<T, I, I>,
                                          &kl_passes<T, I>,
                                          &update_cosines<T, SparseRows<T, I>>,
                                          &cluster_products<T, SparseRows<T, I>>};

#define NONNEG_ENTRY(name) &name<T>,  // NOLINT(bugprone-macro-parentheses)
template <class T>
constexpr Operations<T> operations{&blas_gemm<T>,
                                   indexed<T, std::int32_t>,
                                   indexed<T, std::int64_t>,
                                   &update_cosines<T, DenseRows<T>>,
                                   &cluster_products<T, DenseRows<T>>,
                                   NONNEG_OPERATIONS(NONNEG_ENTRY)};

const Table table{operations<double>,
                  operations<float>,
                  &l1_rows,
                  &lowest_scores,
                  {&transform_step, &equalize, &batch_objectives, &sum_of_solutions}};

PyModuleDef definition{PyModuleDef_HEAD_INIT, NONNEG_NAME, nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

#define NONNEG_JOIN(a, b) a##b
#define NONNEG_INIT(name) NONNEG_JOIN(PyInit_, name)

PyMODINIT_FUNC NONNEG_INIT(NONNEG_MODULE)() {
  PyObject* module = PyModule_Create(&definition);
  if (!module) return nullptr;
  PyObject* address = PyCapsule_New(const_cast<Table*>(&table), table_name, nullptr);
  if (!address || PyModule_AddObjectRef(module, "table", address) < 0) Py_CLEAR(module);
  Py_XDECREF(address);
  return module;
}
