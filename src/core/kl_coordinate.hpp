// Coordinate descent on rows under the Kullback-Leibler divergence, over their nonzeros.
//
// The problem of a row w >= 0 is to minimize c w' - sum_p x_p log(sum_a w_a h_pa) + l1 |w| + l2 / 2 |w|^2, where h are
// the rows of the other factor at the nonzeros x. A round computes the full gradient, selects the components that are
// positive or have a negative gradient, gathers their columns of h, and sweeps over them by safe Newton steps on one
// component at a time (Hsieh & Dhillon 2011, Section 3.2). Where a row is to be solved, a Newton step on the positive
// components ends the round: the sweeps find them, Newton's method finds their values. Every row stops on its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "csr.hpp"
#include "logarithm.hpp"
#include "pool.hpp"

namespace nonneg {

template <class T>
struct KlCoordinate {
  const T *other, *sums;  // n_columns x k; costs of the components, 1 x k or n_rows x k
  bool own_sums;
  std::int64_t k;
  const std::int64_t* order;  // the components that may change
  std::int64_t n_order;
  double l1, l2;
  std::int64_t max_rounds;
  int max_sweeps;
  double shrink, tol, lower_bound, inverse_unit;
};

// Added to the diagonal of a Hessian, relative to its largest entry; and the part of itself below which a component
// is zero.
constexpr double kl_ridge = 1e-11, kl_small = 1e-14;

template <class T>
class KlRow {
 public:
  explicit KlRow(const KlCoordinate<T>& problem)
      : p_(problem), k_(problem.k), l2_(static_cast<T>(problem.l2)), lower_bound_(static_cast<T>(problem.lower_bound)),
        pull_(k_), cost_(k_), active_(k_), passive_(k_), hessian_(k_ * k_), lower_(k_ * k_), diagonal_(k_), slope_(k_),
        rest_(k_), step_(k_), part_(k_) {}

  // Decrease the loss of a row w with nonzeros x, in place. Returns the residual at the last full gradient, and the
  // sum of x log(w h' / unit) in `logs`.
  template <class I>
  double update(const I* columns, const T* x, std::int64_t n, const T* sums, T* w, double* logs) {
    columns_.assign(columns, columns + n);  // of one type, for which the row is compiled once
    return update(x, n, sums, w, logs);
  }

 private:
  double update(const T* x, std::int64_t n, const T* sums, T* w, double* logs) {
    if (static_cast<std::int64_t>(wh_.size()) < n) wh_.resize(n), inverse_.resize(n), h_.resize(n * k_);
    x_ = x, n_ = n, w_ = w;
    double total = 0;
    for (std::int64_t p = 0; p < n; ++p) total += x[p];
    for (std::int64_t a = 0; a < k_; ++a) cost_[a] = sums[a] + static_cast<T>(p_.l1);
    if (model() <= lower_bound_ && total > 0 && is_infinite()) {
      double scale = 0;
      for (std::int64_t turn = 0; turn < p_.n_order; ++turn) scale += cost_[p_.order[turn]];
      for (std::int64_t turn = 0; turn < p_.n_order; ++turn)
        w[p_.order[turn]] += static_cast<T>(total / std::max(scale, p_.lower_bound));
      model();
    }
    double residual = 0;
    for (std::int64_t round = 0; round <= p_.max_rounds; ++round) {
      if (round > 0) {
        if (round == p_.max_rounds && p_.tol == 0) break;
        model();
      }
      residual = select(total);
      if (n_active_ == 0 || residual <= p_.tol || round == p_.max_rounds) break;
      gather();
      double limit = 0;
      for (int turn = 0; turn < p_.max_sweeps; ++turn) {
        const double change = sweep();
        if (turn == 0) limit = change * p_.shrink;
        if (change <= limit) break;
      }
      if (p_.tol > 0) newton_step();
    }
    const T lower_bound = lower_bound_;
    const double inverse_unit = p_.inverse_unit;
    double logged = 0;
    for (std::int64_t p = 0; p < n; ++p)
      logged += x[p] * quick_log(static_cast<double>(std::max(wh_[p], lower_bound)) * inverse_unit);
    *logs = logged;
    return residual;
  }

  // Write w h' at the nonzeros; return the smallest of them.
  T model() {
    T lowest = std::numeric_limits<T>::infinity();
    for (std::int64_t p = 0; p < n_; ++p) {
      const T* h = p_.other + columns_[p] * k_;
      T total = 0;
      for (std::int64_t a = 0; a < k_; ++a) total += w_[a] * h[a];
      wh_[p] = total;
      lowest = std::min(lowest, total);
    }
    return lowest;
  }

  // Whether the model is zero where the data are not, and could be positive: then the row is to be reset.
  bool is_infinite() const {
    for (std::int64_t p = 0; p < n_; ++p)
      if (x_[p] > 0 && wh_[p] <= lower_bound_)
        for (std::int64_t turn = 0; turn < p_.n_order; ++turn)
          if (p_.other[columns_[p] * k_ + p_.order[turn]] > 0) return true;
    return false;
  }

  // Compute the gradient and select components; return the KKT residual: negative gradients, and gradients of positive
  // components times their weights.
  double select(double total) {
    std::fill(pull_.begin(), pull_.end(), T(0));
    const T lower_bound = lower_bound_;
    T* __restrict pull = pull_.data();
    for (std::int64_t p = 0; p < n_; ++p) {
      wh_[p] = std::max(wh_[p], lower_bound);
      inverse_[p] = 1 / wh_[p];
      const T ratio = x_[p] * inverse_[p];
      const T* h = p_.other + columns_[p] * k_;
      for (std::int64_t a = 0; a < k_; ++a) pull[a] += ratio * h[a];
    }
    n_active_ = 0;
    double residual = 0, slack = 0;
    for (std::int64_t turn = 0; turn < p_.n_order; ++turn) {
      const std::int64_t a = p_.order[turn];
      const double g = cost_[a] + l2_ * w_[a] - pull_[a];
      if (!(w_[a] > 0 || g < 0)) continue;
      active_[n_active_++] = a;
      slack += w_[a] * std::abs(g);
      residual = std::max(residual, -g / std::max(cost_[a] + l2_ * w_[a], lower_bound_));
    }
    return std::max(residual, slack / std::max(total, p_.lower_bound));
  }

  // The active columns of h, as narrow as the row: short rows stay in the first-level cache.
  void gather() {
    for (std::int64_t p = 0; p < n_; ++p) {
      const T* h = p_.other + columns_[p] * k_;
      for (std::int64_t b = 0; b < n_active_; ++b) h_[b * n_ + p] = h[active_[b]];
    }
  }

  // The negative part of the derivative of component t at zero: sum x h / (wh - t h).
  T pull_at_zero(const T* h, T t) const {
    const T lower_bound = lower_bound_;  // a member would be read again and again, and the loop stays scalar
    T total = 0;
    for (std::int64_t p = 0; p < n_; ++p) total += x_[p] * h[p] / std::max(wh_[p] - t * h[p], lower_bound);
    return total;
  }

  // Update the active components once; return the weighted sum of the changes. A component t takes a Newton step for
  // its derivative g if g < 0, and for t g(t) if g > 0: g is concave and t g(t) convex, so that neither overshoots and
  // no step increases the loss.
  double sweep() {
    const T* __restrict x = x_, lower_bound = lower_bound_;
    T* __restrict wh = wh_.data(), * __restrict inverse = inverse_.data();
    double change = 0;
    for (std::int64_t b = 0; b < n_active_; ++b) {
      const std::int64_t a = active_[b];
      const T* __restrict h = &h_[b * n_];
      T pull = 0, curvature = 0;
      for (std::int64_t p = 0; p < n_; ++p) {
        const T scaled = h[p] * inverse[p], q = x[p] * scaled;
        pull += q;
        curvature += q * scaled;
      }
      curvature += l2_;
      const T t = w_[a], g = cost_[a] + l2_ * t - pull;
      T next = t;
      if (g < 0) {
        if (curvature > 0) next = t - g / curvature;
      } else if (t > 0) {
        next = t * t * curvature / (g + t * curvature);
        if (t * curvature <= g && cost_[a] >= pull_at_zero(h, t)) next = 0;
      }
      const T step = next - t;
      if (step == 0) continue;
      w_[a] = next;
      change += std::abs(step) * cost_[a];
      for (std::int64_t p = 0; p < n_; ++p) {
        wh[p] = std::max(wh[p] + step * h[p], lower_bound);
        inverse[p] = 1 / wh[p];
      }
    }
    return change;
  }

  // Solve the equations of the passive components by Cholesky, into part_; false if they are singular.
  bool solve_passive(std::int64_t m) {
    for (std::int64_t a = 0; a < m; ++a) {
      const double* row = &hessian_[passive_[a] * k_];
      double* own = &lower_[a * k_];
      for (std::int64_t b = 0; b < a; ++b) {
        double total = row[passive_[b]];
        for (std::int64_t c = 0; c < b; ++c) total -= own[c] * lower_[b * k_ + c];
        own[b] = total * diagonal_[b];
      }
      double pivot = row[passive_[a]];
      const double lowest = pivot * 1e-13;
      for (std::int64_t c = 0; c < a; ++c) pivot -= own[c] * own[c];
      if (!(pivot > lowest)) return false;
      diagonal_[a] = 1 / std::sqrt(pivot);
    }
    for (std::int64_t a = 0; a < m; ++a) {
      double total = rest_[passive_[a]];
      for (std::int64_t c = 0; c < a; ++c) total -= lower_[a * k_ + c] * part_[c];
      part_[a] = total * diagonal_[a];
    }
    for (std::int64_t a = m - 1; a >= 0; --a) {
      double total = part_[a];
      for (std::int64_t c = a + 1; c < m; ++c) total -= lower_[c * k_ + a] * part_[c];
      part_[a] = total * diagonal_[a];
    }
    return true;
  }

  // Write slopes and Hessian of the positive active components; return their number.
  std::int64_t positive_components() {
    std::int64_t m = 0;
    for (std::int64_t b = 0; b < n_active_; ++b) {
      step_[b] = 0;
      if (w_[active_[b]] > 0) passive_[m++] = b;
    }
    double largest = 0;
    for (std::int64_t q = 0; q < m; ++q) {
      const std::int64_t b = passive_[q], a = active_[b];
      const T* hb = &h_[b * n_];
      T pull = 0;
      for (std::int64_t p = 0; p < n_; ++p) pull += x_[p] * inverse_[p] * hb[p];
      slope_[b] = rest_[b] = pull - cost_[a] - l2_ * w_[a];
      for (std::int64_t r = 0; r <= q; ++r) {
        const T* hc = &h_[passive_[r] * n_];
        T total = 0;
        for (std::int64_t p = 0; p < n_; ++p) total += (x_[p] * inverse_[p] * hb[p]) * (inverse_[p] * hc[p]);
        hessian_[b * k_ + passive_[r]] = hessian_[passive_[r] * k_ + b] = total;
      }
      hessian_[b * k_ + b] += l2_;
      largest = std::max(largest, hessian_[b * k_ + b]);
    }
    // Components that repeat make the equations singular.
    for (std::int64_t q = 0; q < m; ++q) hessian_[passive_[q] * (k_ + 1)] += kl_ridge * largest;
    return m;
  }

  // Move the positive active components to the minimizer of their quadratic model over nonnegative ones, or to where
  // the derivative on the way there vanishes. Components that the model makes zero leave one after another, as in
  // Lawson and Hanson's least squares: ending the step at the first of them takes hundreds of rounds where
  // components nearly repeat.
  void newton_step() {
    for (std::int64_t m = positive_components(); m > 0;) {
      if (!solve_passive(m)) return;
      double longest = 1;
      for (std::int64_t q = 0; q < m; ++q)
        if (part_[q] < 0) longest = std::min(longest, -(w_[active_[passive_[q]]] + step_[passive_[q]]) / part_[q]);
      for (std::int64_t q = 0; q < m; ++q) step_[passive_[q]] += longest * part_[q];
      if (longest >= 1) break;
      std::int64_t n_positive = 0;
      for (std::int64_t q = 0; q < m; ++q) {
        const std::int64_t b = passive_[q];
        const T value = w_[active_[b]];
        if (value + step_[b] > kl_small * value) passive_[n_positive++] = b;
        else step_[b] = -static_cast<double>(value);
      }
      if (n_positive == m) break;
      m = n_positive;
      // The gradient of the model at the point reached.
      for (std::int64_t q = 0; q < m; ++q) {
        const std::int64_t b = passive_[q];
        rest_[b] = slope_[b];
        for (std::int64_t c = 0; c < n_active_; ++c)
          if (step_[c] != 0) rest_[b] -= hessian_[b * k_ + c] * step_[c];
      }
    }
    move_along();
  }

  // Move along step_ by a line search.
  void move_along() {
    std::vector<T>& d = inverse_;  // the model moves by this
    double down = 0, linear = 0, quadratic = 0;
    for (std::int64_t b = 0; b < n_active_; ++b)
      if (step_[b] != 0) down += slope_[b] * step_[b];
    if (!(down > 0)) return;
    std::fill(d.begin(), d.begin() + n_, T(0));
    for (std::int64_t b = 0; b < n_active_; ++b) {
      const double step = step_[b];
      if (step == 0) continue;
      const T* h = &h_[b * n_];
      for (std::int64_t p = 0; p < n_; ++p) d[p] += static_cast<T>(step) * h[p];
      linear += step * (cost_[active_[b]] + l2_ * w_[active_[b]]);
      quadratic += l2_ * step * step;
    }
    const T lower_bound = lower_bound_;
    double t = 1;
    for (int turn = 0; turn < 4; ++turn) {
      double pull = 0;
      for (std::int64_t p = 0; p < n_; ++p) pull += x_[p] * d[p] / std::max(wh_[p] + static_cast<T>(t) * d[p], lower_bound);
      const double up = linear + t * quadratic - pull;
      if (up <= 0) break;
      t *= down / (down + up);
      if (up <= 2 * down) break;
    }
    for (std::int64_t p = 0; p < n_; ++p) {
      wh_[p] = std::max(wh_[p] + static_cast<T>(t) * d[p], lower_bound);
      inverse_[p] = 1 / wh_[p];
    }
    for (std::int64_t b = 0; b < n_active_; ++b)
      if (step_[b] != 0) w_[active_[b]] = std::max(w_[active_[b]] + static_cast<T>(t * step_[b]), T(0));
  }

  const KlCoordinate<T>& p_;
  std::int64_t k_;
  T l2_, lower_bound_;
  std::vector<T> wh_, inverse_, h_, pull_, cost_;
  std::vector<std::int64_t> columns_, active_, passive_;
  std::vector<double> hessian_, lower_, diagonal_, slope_, rest_, step_, part_;
  const T* x_ = nullptr;
  T* w_ = nullptr;
  std::int64_t n_ = 0, n_active_ = 0;
};

template <class T, class I>
void kl_passes(const KlCoordinate<T>& problem, const I* indptr, const I* indices, const T* data, std::int64_t n_rows,
               T* factor, double* logs, double* residuals, int n_threads) {
  for_csr_rows(indptr, n_rows, n_threads, [&](std::int64_t begin, std::int64_t end) {
    KlRow<T> row(problem);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto first = static_cast<std::int64_t>(indptr[i]), last = static_cast<std::int64_t>(indptr[i + 1]);
      residuals[i] = row.update(indices + first, data + first, last - first,
                                problem.sums + (problem.own_sums ? i * problem.k : 0), factor + i * problem.k, logs + i);
    }
  });
}

}  // namespace nonneg
