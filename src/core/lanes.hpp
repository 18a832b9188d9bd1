// Short vectors of rows: operations on all lanes at once, kept in registers by the compiler.
// `larger` and `smaller` return the first argument where it is not a number.
#pragma once

#include <cstdint>
#include <cstring>

namespace nonneg {

#if defined(__AVX512F__)
constexpr int register_bytes = 64;
#elif defined(__AVX__)
constexpr int register_bytes = 32;
#else
constexpr int register_bytes = 16;
#endif
// Sums of eight registers keep a core's units busy, of AVX-512 four.
constexpr int n_registers = register_bytes == 64 ? 4 : 8;

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int n_simd_registers = 32;
#else
constexpr int n_simd_registers = 16;
#endif

template <class T>
constexpr std::int64_t n_lanes = n_registers* register_bytes / static_cast<int>(sizeof(T));

#if defined(__GNUC__) && !defined(NONNEG_WITHOUT_VECTORS)
template <class T>
struct RegisterOf {
  typedef T type __attribute__((vector_size(register_bytes)));
};
template <class T>
using Register = typename RegisterOf<T>::type;
template <class T>
inline Register<T> in_register(T value) {
  return value - Register<T>{};
}
template <class T>
inline T larger(const T& x, const T& y) {
  return (x < y) ? y : x;
}
template <class T>
inline T smaller(const T& x, const T& y) {
  return (y < x) ? y : x;
}
#define NONNEG_UNROLL _Pragma("GCC unroll 8")
#else  // the same, entry by entry, for compilers without vectors
template <class T>
struct Register {
  static constexpr int n = register_bytes / static_cast<int>(sizeof(T));
  T at[n];
  T operator[](std::int64_t i) const { return at[i]; }
  Register& operator+=(const Register& other) { return *this = *this + other; }
  Register& operator-=(const Register& other) { return *this = *this - other; }
#define NONNEG_ENTRIES(name, expression)                       \
  friend Register name(const Register& a, const Register& b) { \
    Register out;                                              \
    for (int i = 0; i < n; ++i) {                              \
      const T x = a.at[i], y = b.at[i];                        \
      out.at[i] = expression;                                  \
    }                                                          \
    return out;                                                \
  }
  NONNEG_ENTRIES(operator+, x + y)
  NONNEG_ENTRIES(operator-, x - y)
  NONNEG_ENTRIES(operator*, x* y)
  NONNEG_ENTRIES(larger, (x < y) ? y : x)
  NONNEG_ENTRIES(smaller, (y < x) ? y : x)
#undef NONNEG_ENTRIES
};
template <class T>
inline Register<T> in_register(T value) {
  Register<T> out;
  for (T& entry : out.at) entry = value;
  return out;
}
#define NONNEG_UNROLL
#endif

template <class T>
struct Lanes {
  Register<T> part[n_registers];
};

// out[i] = expression of a.part[i] and b.part[i], register by register.
#define NONNEG_LANES(name, expression)                         \
  template <class T>                                           \
  inline Lanes<T> name(const Lanes<T>& a, const Lanes<T>& b) { \
    Lanes<T> out;                                              \
    NONNEG_UNROLL                                              \
    for (int i = 0; i < n_registers; ++i) {                    \
      const Register<T> x = a.part[i], y = b.part[i];          \
      out.part[i] = expression;                                \
    }                                                          \
    return out;                                                \
  }
NONNEG_LANES(operator+, x + y)
NONNEG_LANES(operator-, x - y)
NONNEG_LANES(operator*, x* y)
NONNEG_LANES(larger, larger(x, y))
NONNEG_LANES(smaller, smaller(x, y))
#undef NONNEG_LANES

template <class T>
inline Lanes<T> spread(T value) {
  Lanes<T> out;
  NONNEG_UNROLL
  for (int i = 0; i < n_registers; ++i) out.part[i] = in_register(value);
  return out;
}
template <class T>
inline Lanes<T> load(const T* from) {
  Lanes<T> out;
  NONNEG_UNROLL
  for (int i = 0; i < n_registers; ++i) std::memcpy(&out.part[i], from + i * (n_lanes<T> / n_registers), register_bytes);
  return out;
}
template <class T>
inline void store(T* to, const Lanes<T>& value) {
  NONNEG_UNROLL
  for (int i = 0; i < n_registers; ++i) std::memcpy(to + i * (n_lanes<T> / n_registers), &value.part[i], register_bytes);
}
// sum += factor * rows, for the loads of `rows`.
template <class T>
inline void add_product(Lanes<T>& sum, T factor, const T* rows) {
  const Register<T> f = in_register(factor);
  NONNEG_UNROLL
  for (int i = 0; i < n_registers; ++i) {
    Register<T> x;
    std::memcpy(&x, rows + i * (n_lanes<T> / n_registers), register_bytes);
    sum.part[i] += f * x;
  }
}

template <class T>
inline void add_product(Lanes<T>& sum, T factor, const Lanes<T>& rows) {
  const Register<T> f = in_register(factor);
  NONNEG_UNROLL
  for (int i = 0; i < n_registers; ++i) sum.part[i] += f * rows.part[i];
}

template <class T>
inline void add_product(Lanes<T>& sum, const Lanes<T>& factors, const Lanes<T>& rows) {
  sum = sum + factors * rows;
}

}  // namespace nonneg
