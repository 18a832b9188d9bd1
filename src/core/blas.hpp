// BLAS of SciPy, reached through the capsules of scipy.linalg.cython_blas; arrays here are by rows.
#pragma once

#include <cstdint>

namespace nonneg {

template <class T>
using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const T*, const T*, const int*, const T*,
                      const int*, const T*, T*, const int*);

// Set once, when the module is loaded.
template <class T>
inline Gemm<T> blas_gemm = nullptr;

enum class Order : char { plain = 'N', transposed = 'T' };

// C (m x n) = op(A) op(B) with p products per entry, by rows of the given lengths; added to `scale` C.
// BLAS reads arrays by columns: what it computes is the transpose of the product.
template <class T>
void gemm(Order a, Order b, std::int64_t m, std::int64_t n, std::int64_t p, const T* A, std::int64_t lda, const T* B,
          std::int64_t ldb, T* C, std::int64_t ldc, T scale = 0) {
  if (m == 0 || n == 0) return;
  const char ta = static_cast<char>(a), tb = static_cast<char>(b);
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), inner = static_cast<int>(p);
  const int la = static_cast<int>(lda), lb = static_cast<int>(ldb), lc = static_cast<int>(ldc);
  const T one = 1;
  blas_gemm<T>(&tb, &ta, &columns, &rows, &inner, &one, B, &lb, A, &la, &scale, C, &lc);
}

}  // namespace nonneg
