// Logarithms and exponentials in operations that vectorize: the library's are one call per entry.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace nonneg {

// The sums in an expression stay as they are written, where the compiler may reorder others.
#if defined(__has_builtin)
#if __has_builtin(__builtin_assoc_barrier)
#define NONNEG_AS_WRITTEN(expression) __builtin_assoc_barrier(expression)
#endif
#endif
#ifndef NONNEG_AS_WRITTEN
#define NONNEG_AS_WRITTEN(expression) (expression)
#endif

constexpr double log_2 = 0.6931471805599453;

// The bits of a floating-point number: an exponent above `shift` bits of mantissa.
template <class T>
struct Bits;
template <>
struct Bits<double> {
  using type = std::uint64_t;
  static constexpr int shift = 52;
};
template <>
struct Bits<float> {
  using type = std::uint32_t;
  static constexpr int shift = 23;
};

// x = 2^exponent near. Bits are about linear in the logarithm, so that the difference of those of x and of v
// says which power of two brings x near v, between 0.66 v and 1.5 v.
template <class T>
struct Scaled {
  T exponent, near;
};
template <class T>
inline Scaled<T> scaled_towards(T x, typename Bits<T>::type v) {
  using B = typename Bits<T>::type;
  constexpr int shift = Bits<T>::shift;
  constexpr B bias = B(1) << (8 * sizeof(B) - 1 - shift);  // exponents are unsigned, which vectorizes everywhere
  const B bits = std::bit_cast<B>(x);
  const B exponent = (bits - v + (bias << shift) + (B(1) << (shift - 1))) >> shift;
  // An integer below 2^shift in the mantissa of 2^shift: read as a number, without a conversion.
  constexpr T offset = T(B(1) << shift);
  const T whole = std::bit_cast<T>(std::bit_cast<B>(offset) | exponent);
  return {whole - (offset + T(bias)), std::bit_cast<T>(bits - ((exponent - bias) << shift))};
}

// log(x / v) of normal numbers to rounding, with one division; finite where x is 0.
template <class T>
inline T log_ratio(T x, T v) {
  const auto [exponent, near] = scaled_towards(x, std::bit_cast<typename Bits<T>::type>(v));
  const T s = (near - v) / (near + v), z = s * s, z2 = z * z;
  // The series of 2 atanh(s); |s| <= 0.2, where the next term is below the rounding of T.
  T p = (T(2. / 3) + T(2. / 5) * z) + z2 * (T(2. / 7) + T(2. / 9) * z);
  if constexpr (sizeof(T) == 8) {
    const T high = (T(2. / 11) + T(2. / 13) * z) + z2 * (T(2. / 15) + T(2. / 17) * z);
    p += (z2 * z2) * (high + (z2 * z2) * (T(2. / 19) + T(2. / 21) * z));
  }
  return exponent * T(log_2) + s * (2 + p * z);
}

// log(value) of a positive normal number to rounding; NaN and infinity stay what they are.
inline double quick_log(double value) {
  const double result = log_ratio(value, 1.0);
  return value <= std::numeric_limits<double>::max() ? result : value;
}

// exp(value) to rounding: a normal number, infinite from 709 on; NaN stays NaN.
inline double quick_exp(double value) {
  const double bounded = value > -708 ? (value < 709 ? value : 709) : -708;  // NaN becomes a number here
  // The nearest integer and 2 to its power, from the bits of a sum at which numbers are 1 apart: conversions to
  // integers do not vectorize everywhere.
  constexpr double offset = 4503599627370496.0;  // 2^52
  constexpr std::uint64_t bias = 2048;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(bounded * 1.4426950408889634 + (offset + bias)) & 4095;
  const double whole = std::bit_cast<double>(std::bit_cast<std::uint64_t>(offset) | bits) - (offset + bias);
  const double high = NONNEG_AS_WRITTEN(bounded - whole * 0.6931471803691238), r = high - whole * 1.9082149292705877e-10;
  // Taylor's polynomial: |r| <= log(2) / 2, where the next term is below 1e-17.
  double p = 1.6059043836821613e-10 * r + 2.08767569878681e-09;
  p = (p * r + 2.505210838544172e-08) * r + 2.755731922398589e-07;
  p = (p * r + 2.7557319223985893e-06) * r + 2.48015873015873e-05;
  p = (p * r + 0.0001984126984126984) * r + 0.001388888888888889;
  p = (p * r + 0.008333333333333333) * r + 0.041666666666666664;
  p = (p * r + 0.16666666666666666) * r + 0.5;
  p = (p * r + 1.0) * r + 1.0;
  const double result = p * std::bit_cast<double>((bits - bias + 1023) << 52);
  return value < 709 ? result : value * std::numeric_limits<double>::max();
}

}  // namespace nonneg
