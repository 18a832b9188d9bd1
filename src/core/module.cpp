// Python module of the compiled core: arrays are checked here, the GIL is released, and no Python object goes further.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

#include "operations.hpp"

namespace nb = nanobind;
using namespace nonneg;
using std::int64_t;

namespace {

const Table* table = nullptr;  // of the instruction set in use

template <class T>
const Operations<T>& operations() {
  if constexpr (std::is_same_v<T, double>) return table->float64;
  else return table->float32;
}
template <class T, class I>
const IndexedOperations<T, I>& indexed() {
  if constexpr (std::is_same_v<I, std::int32_t>) return operations<T>().narrow;
  else return operations<T>().wide;
}

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Cube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T>
using Strided = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

void expect(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

template <class A>
int64_t rows(const A& array) {
  return static_cast<int64_t>(array.shape(0));
}
template <class A>
int64_t columns(const A& array) {
  return static_cast<int64_t>(array.shape(1));
}

template <class A, class... Others>
void expect_same_shape(const A& a, const Others&... others) {
  expect(((rows(a) == rows(others) && columns(a) == columns(others)) && ...), "the arrays must have the same shape");
}

// Distance of the rows (along = 1) or columns (0) of an array that lie one after another; 0 where they do not. A single
// row or column has no distance of its own.
template <class T>
int64_t distance(const Strided<T>& array, int along) {
  const auto n = static_cast<int64_t>(array.shape(1 - along)), k = static_cast<int64_t>(array.shape(along));
  const int64_t step = k > 1 ? array.stride(along) : 1, across = n > 1 ? array.stride(1 - along) : k;
  return step == 1 && across >= k ? std::max<int64_t>(across, 1) : 0;
}

void expect_components(const Vector<const int64_t>& order, int64_t k) {
  for (int64_t turn = 0; turn < rows(order); ++turn)
    expect(0 <= order.data()[turn] && order.data()[turn] < k, "order names a component that does not exist");
}

// Indices of a CSR pattern are trusted by the loops, so that they are checked by whoever builds the matrix; here only
// what is cheap.
template <class I>
void expect_pattern(const Vector<const I>& indptr, const Vector<const I>& indices, int64_t n_rows) {
  expect(rows(indptr) == n_rows + 1, "indptr must have one entry more than there are rows");
  expect(static_cast<int64_t>(indptr.data()[n_rows]) <= rows(indices), "indptr points beyond the indices");
}

template <class T>
double hals_passes(Matrix<T> out, Matrix<const T> initial, Matrix<const T> gram, Matrix<const T> cross,
                   Vector<const int64_t> order, int max_passes, double shrink, int64_t block, int n_threads) {
  const int64_t n = rows(out), k = columns(out);
  expect_same_shape(out, initial, cross);
  expect(rows(gram) == k && columns(gram) == k, "gram must be k x k");
  expect_components(order, k);
  expect(block > 0, "block must be above 0");
  nb::gil_scoped_release release;
  return operations<T>().hals_passes(out.data(), initial.data(), gram.data(), cross.data(), n, k, order.data(), rows(order),
                                     max_passes, shrink, block, n_threads);
}

template <class T>
double hals_weighted(Matrix<T> factor, Strided<const T> weights, Matrix<const T> other, double ridge, Matrix<const T> cross,
                     Vector<const int64_t> order, int max_passes, double shrink, int n_threads) {
  const int64_t n = rows(factor), k = columns(factor), by_rows = distance(weights, 1), by_columns = distance(weights, 0);
  expect_same_shape(factor, cross);
  expect(columns(other) == k, "other must have as many columns as the factor");
  expect(rows(weights) == n && columns(weights) == rows(other),
         "there must be a weight for every row and every row of other");
  expect(by_rows || by_columns, "weights must lie by rows or by columns");
  expect_components(order, k);
  const WeightedGrams<T> grams{
      weights.data(), by_rows != 0, by_rows ? by_rows : by_columns, other.data(), rows(other), k, static_cast<T>(ridge)};
  nb::gil_scoped_release release;
  return operations<T>().hals_weighted(factor.data(), grams, cross.data(), n, order.data(), rows(order), max_passes, shrink,
                                       n_threads);
}

template <class T, class I>
ListedGrams<T, I> checked_grams(const Cube<const double>& base, const Vector<const double>& values,
                                const Matrix<const T>& other, const Vector<const I>& indptr, const Vector<const I>& indices,
                                int64_t n) {
  const int64_t k = columns(other), n_bases = rows(base);
  expect(columns(base) == k && static_cast<int64_t>(base.shape(2)) == k, "base must be of k x k matrices");
  expect(n_bases == 1 || n_bases == n, "base must be one matrix, or one per row");
  expect(rows(values) == rows(indices), "values and indices must have the same length");
  expect_pattern(indptr, indices, n);
  return {base.data(), n_bases == 1 ? 0 : k * k, values.data(), other.data(), indptr.data(), indices.data(), k};
}

template <class T, class I>
double hals_listed(Matrix<T> factor, Cube<const double> base, Vector<const double> values, Matrix<const T> other,
                   Vector<const I> indptr, Vector<const I> indices, Matrix<const T> cross, Vector<const int64_t> order,
                   int max_passes, double shrink, int n_threads) {
  const int64_t n = rows(factor), k = columns(factor);
  expect_same_shape(factor, cross);
  expect(columns(other) == k, "other must have as many columns as the factor");
  const ListedGrams<T, I> grams = checked_grams<T, I>(base, values, other, indptr, indices, n);
  expect_components(order, k);
  nb::gil_scoped_release release;
  return indexed<T, I>().hals_listed(factor.data(), grams, cross.data(), n, order.data(), rows(order), max_passes, shrink,
                                     n_threads);
}

template <class T, class I>
void listed_grams(Cube<const double> base, Vector<const double> values, Matrix<const T> other, Vector<const I> indptr,
                  Vector<const I> indices, Cube<T> out, int n_threads) {
  const int64_t n = static_cast<int64_t>(out.shape(0)), k = columns(other);
  const ListedGrams<T, I> grams = checked_grams<T, I>(base, values, other, indptr, indices, n);
  expect(static_cast<int64_t>(out.shape(1)) == k && static_cast<int64_t>(out.shape(2)) == k, "out must be n x k x k");
  nb::gil_scoped_release release;
  indexed<T, I>().listed_grams(grams, out.data(), n, n_threads);
}

template <class T>
void block_pivoting(Matrix<T> factor, Cube<const double> grams, Matrix<const T> cross, Vector<bool> unsolved,
                    int64_t max_pivots, int n_threads) {
  const int64_t n = rows(factor), k = columns(factor), n_grams = static_cast<int64_t>(grams.shape(0));
  expect_same_shape(factor, cross);
  expect(n_grams == 1 || n_grams == n, "there must be one Gram matrix, or one per row");
  expect(static_cast<int64_t>(grams.shape(1)) == k && static_cast<int64_t>(grams.shape(2)) == k, "grams must be k x k");
  expect(rows(unsolved) == n, "there must be one flag per row");
  nb::gil_scoped_release release;
  operations<T>().block_pivoting(factor.data(), grams.data(), n_grams > 1, cross.data(), unsolved.data(), n, k, max_pivots,
                                 n_threads);
}

template <class T, class I>
void csr_times_(Vector<const I> indptr, Vector<const I> indices, Vector<const T> data, Matrix<const T> B, Matrix<T> out,
                int n_threads) {
  expect_pattern(indptr, indices, rows(out));
  expect(rows(data) == rows(indices), "there must be one index per entry");
  expect(columns(B) == columns(out), "the factor and the product must have the same number of columns");
  nb::gil_scoped_release release;
  indexed<T, I>().csr_times(indptr.data(), indices.data(), data.data(), rows(out), B.data(), rows(B), columns(B), out.data(),
                            n_threads);
}

template <class T, class I>
void sampled_product(Vector<const I> indptr, Vector<const I> indices, Matrix<const T> A, Matrix<const T> B, Vector<T> out,
                     int n_threads) {
  expect_pattern(indptr, indices, rows(A));
  expect(rows(out) == rows(indices) && columns(A) == columns(B), "the factors or the result have another shape");
  nb::gil_scoped_release release;
  indexed<T, I>().csr_sampled_product(indptr.data(), indices.data(), rows(A), A.data(), B.data(), columns(A), out.data(),
                                      n_threads);
}

// Returns violation, absolute, dot; see factor_update.hpp.
template <class T>
nb::tuple factor_update(std::optional<Strided<const T>> data, Strided<const T> other, Matrix<const T> gram,
                        Vector<const int64_t> order, int max_passes, double shrink, double l1, Matrix<const T> initial,
                        std::optional<Matrix<const T>> old, double momentum, int64_t block, Matrix<T> updated,
                        Matrix<T> chosen, Matrix<T> chosen_gram, std::optional<Matrix<T>> updated_gram,
                        std::optional<Matrix<T>> products, int n_threads) {
  using Update = FactorUpdate<T>;
  const int64_t n = rows(updated), k = columns(updated);
  Update update{};
  update.form = Update::Data::products;
  update.n_rows = n, update.k = k;
  expect_same_shape(updated, initial, chosen);
  expect(!old || (rows(*old) == n && columns(*old) == k), "old must have the shape of the factor");
  expect(rows(gram) == k && columns(gram) == k && rows(chosen_gram) == k && columns(chosen_gram) == k, "gram must be k x k");
  expect(!updated_gram || (rows(*updated_gram) == k && columns(*updated_gram) == k), "updated_gram must be k x k");
  const int64_t ld_other = distance(other, 1);
  expect(columns(other) == k && ld_other > 0, "other must have k columns, by rows");
  expect_components(order, k);
  expect(block > 0, "block must be above 0");
  if (data) {
    const int64_t by_rows = distance(*data, 1), by_columns = distance(*data, 0);
    expect(by_rows || by_columns, "data must be by rows or by columns");
    expect(rows(*data) == n && rows(other) == columns(*data) && ld_other == k, "data and other do not fit");
    update.form = by_rows ? Update::Data::by_rows : Update::Data::by_columns;
    update.data = data->data(), update.inner = columns(*data), update.ld_data = by_rows ? by_rows : by_columns;
  } else {
    expect(rows(other) == n, "there must be one row of products per row of the factor");
  }
  expect(!products || (data && rows(*products) == update.inner && columns(*products) == k), "products must be inner x k");
  update.other = other.data(), update.ld_other = ld_other;
  update.gram = gram.data(), update.order = order.data(), update.n_order = rows(order);
  update.max_passes = max_passes, update.shrink = shrink, update.l1 = l1, update.momentum = momentum;
  update.initial = initial.data(), update.old = old ? old->data() : nullptr;
  update.transposed_products = products.has_value(), update.block = block;
  update.updated = updated.data(), update.chosen = chosen.data(), update.chosen_gram = chosen_gram.data();
  update.updated_gram = updated_gram ? updated_gram->data() : nullptr;
  update.products = products ? products->data() : nullptr;
  {
    nb::gil_scoped_release release;
    operations<T>().factor_update(update, n_threads);
  }
  return nb::make_tuple(update.violation, update.absolute, update.dot);
}

template <class T>
void multiply_(Strided<const T> A, bool transposed, Matrix<const T> B, Matrix<T> out, int64_t size, int n_threads) {
  const int64_t m = rows(out), n = columns(out), p = rows(B);
  const int64_t lda = distance(A, 1);
  expect(lda > 0 && size > 0, "A must be by rows");
  expect((transposed ? columns(A) : rows(A)) == m && (transposed ? rows(A) : columns(A)) == p && columns(B) == n,
         "the shapes of the product do not fit");
  nb::gil_scoped_release release;
  operations<T>().multiply(transposed ? Order::transposed : Order::plain, A.data(), lda, B.data(), out.data(), m, n, p, size,
                           n_threads);
}

template <class T>
void inner_product_(Matrix<const T> A, Matrix<const T> B, Matrix<T> out, int64_t size, int n_threads) {
  expect(rows(A) == rows(B) && rows(out) == columns(A) && columns(out) == columns(B) && size > 0,
         "the shapes of the product do not fit");
  nb::gil_scoped_release release;
  operations<T>().inner_product(A.data(), B.data(), out.data(), rows(A), columns(A), columns(B), size, n_threads);
}

template <class T>
void newton_targets_(Matrix<const T> factor, Matrix<const T> gradient, Matrix<const T> diagonal,
                     Matrix<const T> correlations, Vector<const int64_t> order, double l1, double l2, double least,
                     Matrix<T> direction, Matrix<T> notes, int n_threads) {
  const int64_t n = rows(factor), k = columns(factor);
  expect_same_shape(factor, gradient, diagonal, direction);
  expect(rows(correlations) == k && columns(correlations) == k, "correlations must be k x k");
  expect(rows(notes) == 4 && columns(notes) == n, "notes must be 4 x n");
  expect_components(order, k);
  nb::gil_scoped_release release;
  operations<T>().newton_targets(factor.data(), gradient.data(), diagonal.data(), correlations.data(), n, k, order.data(),
                                 rows(order), l1, l2, least, direction.data(), notes.data(), n_threads);
}

// What is added to: at_start, at_end, total, sums, curvatures, gram; see kl_newton.hpp.
template <class T>
void kl_newton_(Matrix<const T> x, Vector<const T> weights, Matrix<const T> W, Matrix<const T> before, double momentum,
                double fraction, Matrix<const T> Ht, Matrix<const T> H, Matrix<const T> squares, Vector<const T> means,
                Matrix<const T> correlations, double l1, double l2, double lower_bound, double least, double tiny,
                double most, double shortest, int tries, int64_t tiles, Matrix<T> new_W, Vector<double> at_start,
                Vector<double> at_end, Vector<double> total, Matrix<T> sums, Matrix<T> curvatures, Matrix<T> gram,
                int n_threads) {
  const int64_t n_rows = rows(x), n = columns(x), k = columns(W);
  expect(rows(W) == n_rows && rows(weights) == n_rows, "there must be one row and one weight per row of the data");
  expect_same_shape(W, before, new_W);
  expect(rows(Ht) == n && columns(Ht) == k && rows(H) == k && columns(H) == n, "Ht must be n x k, H its transpose");
  expect_same_shape(Ht, squares, sums);
  expect(rows(correlations) == k && columns(correlations) == k && rows(means) == k && rows(total) == k,
         "there must be k means");
  expect(rows(curvatures) == n && columns(curvatures) == k + 1 && rows(gram) == k && columns(gram) == k,
         "curvatures must be n x (k + 1), gram k x k");
  expect(rows(at_start) == n && rows(at_end) == n && tiles > 0, "there must be one loss per column");
  nb::gil_scoped_release release;
  KlNewton<T> pass{};
  pass.n_rows = n_rows, pass.n = n, pass.k = k, pass.x = x.data(), pass.weights = weights.data();
  pass.W = W.data(), pass.before = before.data(), pass.momentum = momentum, pass.fraction = fraction;
  pass.Ht = Ht.data(), pass.H = H.data(), pass.squares = squares.data(), pass.means = means.data();
  pass.correlations = correlations.data(), pass.l1 = l1, pass.l2 = l2, pass.lower_bound = lower_bound;
  pass.least = least, pass.tiny = tiny, pass.most = most, pass.shortest = shortest, pass.tries = tries, pass.tiles = tiles;
  pass.new_W = new_W.data(), pass.at_start = at_start.data(), pass.at_end = at_end.data(), pass.total = total.data();
  pass.sums = sums.data(), pass.curvatures = curvatures.data(), pass.gram = gram.data();
  operations<T>().kl_newton(pass, n_threads);
}

template <class T>
BetaBlock<T> beta_block(const Matrix<const T>& x, const T* v, const Matrix<const T>& weights, double beta,
                        double lower_bound) {
  expect(columns(weights) == columns(x) && (rows(weights) == 1 || rows(weights) == rows(x)), "weights do not fit");
  return {x.data(), v, weights.data(), rows(weights) > 1, rows(x), columns(x), beta, static_cast<T>(lower_bound)};
}

template <class T>
void ratio_terms_(Matrix<const T> x, Matrix<T> v, std::optional<Matrix<T>> power, double beta, double lower_bound) {
  expect_same_shape(x, v);
  expect(power ? rows(*power) == rows(x) && columns(*power) == columns(x) : beta == 1, "power must have the shape of x");
  nb::gil_scoped_release release;
  operations<T>().ratio_terms(x.data(), v.data(), power ? power->data() : nullptr, rows(x) * columns(x), beta,
                              static_cast<T>(lower_bound));
}

template <class T>
void row_losses_(Matrix<const T> x, Matrix<const T> v, Matrix<const T> weights, double beta, double lower_bound,
                 Vector<double> losses) {
  expect_same_shape(x, v);
  expect(rows(losses) == rows(x), "there must be one loss per row");
  const auto block = beta_block(x, v.data(), weights, beta, lower_bound);
  nb::gil_scoped_release release;
  operations<T>().row_losses(block, losses.data());
}

template <class T>
void column_losses_(Matrix<const T> x, Matrix<const T> v, Matrix<const T> weights, Vector<const double> row_weights,
                    double beta, double lower_bound, Vector<double> losses) {
  expect_same_shape(x, v);
  expect(rows(losses) == columns(x) && rows(row_weights) == rows(x),
         "there must be one loss per column, one weight per row");
  const auto block = beta_block(x, v.data(), weights, beta, lower_bound);
  nb::gil_scoped_release release;
  operations<T>().column_losses(block, row_weights.data(), losses.data());
}

template <class T>
void newton_terms_(Matrix<const T> x, Matrix<const T> v, Matrix<const T> weights, double beta, double lower_bound,
                   double curvature_bound, bool exact, Matrix<T> slope, Matrix<T> curvature) {
  expect_same_shape(x, v, slope, curvature);
  const auto block = beta_block(x, v.data(), weights, beta, lower_bound);
  nb::gil_scoped_release release;
  operations<T>().newton_terms(block, curvature_bound, exact, slope.data(), curvature.data());
}

template <class T>
void line_search_(Matrix<const T> x, Matrix<T> v, Matrix<const T> d, Matrix<const T> weights, double beta,
                  double lower_bound, Vector<const double> linear, Vector<const double> quadratic,
                  Vector<const double> slopes, int tries, Vector<double> steps) {
  expect_same_shape(x, v, d);
  for (const int64_t n : {rows(linear), rows(quadratic), rows(slopes), rows(steps)})
    expect(n == rows(x), "there must be one number per row");
  const auto block = beta_block(x, v.data(), weights, beta, lower_bound);
  nb::gil_scoped_release release;
  operations<T>().line_search(block, v.data(), d.data(), linear.data(), quadratic.data(), slopes.data(), tries,
                              steps.data());
}

template <class T, class I>
void kl_passes_(Vector<const I> indptr, Vector<const I> indices, Vector<const T> data, Matrix<T> factor,
                Matrix<const T> other, Matrix<const T> sums, Vector<const int64_t> order, double l1, double l2,
                int64_t max_rounds, int max_sweeps, double shrink, double tol, double lower_bound, double inverse_unit,
                Vector<double> logs, Vector<double> residuals, int n_threads) {
  const int64_t n = rows(factor), k = columns(factor);
  expect_pattern(indptr, indices, n);
  expect(rows(data) == rows(indices), "there must be one index per entry");
  expect(columns(other) == k && columns(sums) == k && (rows(sums) == 1 || rows(sums) == n), "other or sums do not fit");
  expect(rows(logs) == n && rows(residuals) == n, "there must be one number per row");
  expect_components(order, k);
  nb::gil_scoped_release release;
  const KlCoordinate<T> problem{other.data(), sums.data(), rows(sums) > 1, k,      order.data(), rows(order), l1,
                                l2,           max_rounds,  max_sweeps,     shrink, tol,          lower_bound, inverse_unit};
  indexed<T, I>().kl_passes(problem, indptr.data(), indices.data(), data.data(), n, factor.data(), logs.data(),
                            residuals.data(), n_threads);
}

// Returns squared norms; see row_caps.hpp.
template <class T>
nb::tuple cap_rows_(Matrix<const T> offset, Matrix<T> product, Matrix<T> split, Matrix<T> dual, Vector<T> caps, double relax,
                    double tau, double unit, int n_threads) {
  expect_same_shape(product, offset, split, dual);
  expect(rows(caps) == rows(product), "there must be one cap per row");
  std::array<double, 4> sums;
  {
    nb::gil_scoped_release release;
    sums = operations<T>().cap_rows(offset.data(), product.data(), split.data(), dual.data(), caps.data(), rows(product),
                                    columns(product), relax, tau, unit, n_threads);
  }
  return nb::make_tuple(sums[0], sums[1], sums[2], sums[3]);
}

template <class T>
void dominating_diagonal_(Matrix<T> C, Vector<const T> weights, int64_t max_steps, int n_threads) {
  expect(rows(C) == columns(C) && rows(weights) == rows(C), "the matrix must be square, with one weight per row");
  nb::gil_scoped_release release;
  operations<T>().dominating_diagonal(C.data(), weights.data(), rows(C), max_steps, n_threads);
}

void l1_rows_(Matrix<const double> A, Matrix<const double> targets, Matrix<int64_t> bases, Matrix<double> out,
              Matrix<double> dual, Vector<int64_t> n_pivots, double tol, int64_t max_pivots, int n_threads) {
  const int64_t m = rows(A), n = columns(A);
  expect(rows(targets) == n && columns(targets) == n && rows(bases) == n && columns(bases) == n,
         "targets and bases must be n x n");
  expect(rows(out) == n && columns(out) == m && rows(dual) == n && columns(dual) == n && rows(n_pivots) == n,
         "the results do not fit");
  for (int64_t at = 0; at < n * n; ++at) expect(0 <= bases.data()[at] && bases.data()[at] < m, "a basis names no row of A");
  nb::gil_scoped_release release;
  table->l1_rows(A.data(), m, n, targets.data(), bases.data(), out.data(), dual.data(), n_pivots.data(), tol, max_pivots,
                 n_threads);
}

void lowest_scores_(Matrix<const float> points, Matrix<const float> residuals, Vector<const int64_t> starts,
                    Vector<const int64_t> listed, Vector<const float> extra, Vector<int64_t> index, Vector<float> lowest,
                    Vector<float> next, int n_threads) {
  const int64_t n = rows(residuals), *start = starts.data();
  expect(columns(points) == columns(residuals) && columns(points) > 0, "points and residuals have different features");
  expect(rows(starts) == n + 1 && rows(index) == n && rows(lowest) == n && rows(next) == n,
         "there must be one per residual");
  expect(start[0] == 0 && start[n] == rows(listed) && rows(listed) == rows(extra), "the listed entries do not fit");
  for (int64_t j = 0; j < n; ++j) expect(start[j] <= start[j + 1], "starts must not decrease");
  nb::gil_scoped_release release;
  table->lowest_scores(points.data(), rows(points), residuals.data(), n, columns(points), start, listed.data(), extra.data(),
                       index.data(), lowest.data(), next.data(), n_threads);
}

template <class T>
void simplex_pivoting_(Matrix<T> factor, Matrix<const double> gram, Matrix<const double> projector,
                       Matrix<const double> full, Matrix<const T> cross, Vector<bool> unsolved, int64_t max_pivots,
                       int n_threads) {
  const int64_t n = rows(factor), k = columns(factor);
  expect_same_shape(factor, cross, full);
  expect(rows(gram) == k && columns(gram) == k && rows(projector) == k && columns(projector) == k, "gram must be k x k");
  expect(rows(unsolved) == n, "there must be one flag per row");
  nb::gil_scoped_release release;
  operations<T>().simplex_pivoting(factor.data(), gram.data(), projector.data(), full.data(), cross.data(), unsolved.data(),
                                   n, k, max_pivots, n_threads);
}

// Dense rows, or those of a CSR matrix with so many columns.
template <class T>
DenseRows<T> data_rows(const Matrix<const T>& data, int64_t n_rows, int64_t n_columns) {
  expect(rows(data) == n_rows && columns(data) == n_columns, "the rows have another shape");
  return {data.data(), n_rows, n_columns};
}
template <class T, class I>
SparseRows<T, I> data_rows(const Vector<const I>& indptr, const Vector<const I>& indices, const Vector<const T>& data,
                           int64_t n_rows, int64_t n_columns) {
  expect_pattern(indptr, indices, n_rows);
  expect(rows(data) == rows(indices), "there must be one index per entry");
  return {indptr.data(), indices.data(), data.data(), n_rows, n_columns};
}

template <class T, class Rows, class Operation>
void update_cosines_(const Rows& data, const Operation& operation, const Vector<const T>& inverse_norms,
                     const Matrix<const T>& centroids, const std::optional<Vector<const double>>& rates, double shift,
                     const Vector<double>& nearest, const Vector<int64_t>& n_compared, int n_threads) {
  const int64_t n = data.n_rows;
  expect(rows(inverse_norms) == n && rows(n_compared) == n && (!rates || rows(*rates) == n), "there must be one per row");
  for (int64_t i = 0; i < n; ++i) expect(n_compared.data()[i] >= 0, "n_compared must not be negative");
  nb::gil_scoped_release release;
  operation(data, inverse_norms.data(), centroids.data(), rows(centroids), rates ? rates->data() : nullptr, shift,
            nearest.data(), n_compared.data(), n_threads);
}
template <class T>
void update_cosines_dense(Matrix<const T> data, Vector<const T> inverse_norms, Matrix<const T> centroids,
                          std::optional<Vector<const double>> rates, double shift, Vector<double> nearest,
                          Vector<int64_t> n_compared, int n_threads) {
  update_cosines_<T>(data_rows<T>(data, rows(nearest), columns(centroids)), operations<T>().update_cosines, inverse_norms,
                     centroids, rates, shift, nearest, n_compared, n_threads);
}
template <class T, class I>
void update_cosines_sparse(Vector<const I> indptr, Vector<const I> indices, Vector<const T> data,
                           Vector<const T> inverse_norms, Matrix<const T> centroids,
                           std::optional<Vector<const double>> rates, double shift, Vector<double> nearest,
                           Vector<int64_t> n_compared, int n_threads) {
  update_cosines_<T>(data_rows<T, I>(indptr, indices, data, rows(nearest), columns(centroids)),
                     indexed<T, I>().update_cosines, inverse_norms, centroids, rates, shift, nearest, n_compared, n_threads);
}

template <class T, class Rows, class Operation>
void cluster_products_(const Rows& data, const Operation& operation, const Vector<const int64_t>& order,
                       const Matrix<const int64_t>& pieces, const Matrix<const T>& vectors,
                       const std::optional<Vector<const T>>& weights, const Vector<T>& products, const Matrix<T>& totals,
                       int n_threads) {
  const int64_t n = data.n_rows, n_pieces = columns(pieces);
  const int64_t *starts = pieces.data(), *stops = starts + n_pieces, *owners = stops + n_pieces;
  expect(rows(order) == n && (!weights || rows(*weights) == n), "there must be one per row");
  expect(rows(pieces) == 3 && rows(totals) == n_pieces && columns(totals) == data.n_columns,
         "there must be a sum per piece");
  for (int64_t i = 0; i < n; ++i)
    expect(0 <= order.data()[i] && order.data()[i] < n, "order names a row that does not exist");
  for (int64_t p = 0; p < n_pieces; ++p)
    expect(0 <= starts[p] && stops[p] <= n && 0 <= owners[p] && owners[p] < rows(vectors), "a piece does not exist");
  nb::gil_scoped_release release;
  operation(data, order.data(), starts, stops, owners, n_pieces, vectors.data(), weights ? weights->data() : nullptr,
            products.data(), totals.data(), n_threads);
}
template <class T>
void cluster_products_dense(Matrix<const T> data, Vector<const int64_t> order, Matrix<const int64_t> pieces,
                            Matrix<const T> vectors, std::optional<Vector<const T>> weights, Vector<T> products,
                            Matrix<T> totals, int n_threads) {
  cluster_products_<T>(data_rows<T>(data, rows(products), columns(vectors)), operations<T>().cluster_products, order, pieces,
                       vectors, weights, products, totals, n_threads);
}
template <class T, class I>
void cluster_products_sparse(Vector<const I> indptr, Vector<const I> indices, Vector<const T> data,
                             Vector<const int64_t> order, Matrix<const int64_t> pieces, Matrix<const T> vectors,
                             std::optional<Vector<const T>> weights, Vector<T> products, Matrix<T> totals, int n_threads) {
  cluster_products_<T>(data_rows<T, I>(indptr, indices, data, rows(products), columns(vectors)),
                       indexed<T, I>().cluster_products, order, pieces, vectors, weights, products, totals, n_threads);
}

template <class T>
void threshold_decode_(Matrix<const T> X, Matrix<const T> inverse, Vector<const T> threshold, Vector<const T> reference,
                       int rule, std::optional<Vector<const T>> weights, Vector<double> sums, int n_threads) {
  const int64_t n = rows(inverse);
  expect(columns(inverse) == columns(X) && columns(X) > 0, "samples and inverse do not fit");
  expect(rows(threshold) == n && rows(reference) == n && n > 0, "there must be a threshold and a reference per feature");
  expect(!weights || rows(*weights) == rows(X), "there must be one weight per sample");
  expect(0 <= rule && rule <= 2, "there is no such rule");
  ThresholdDecode<T> problem{};
  problem.X = X.data(), problem.n_rows = rows(X), problem.m = columns(X), problem.n = n, problem.inverse = inverse.data();
  problem.threshold = threshold.data(), problem.reference = reference.data(), problem.sums = sums.data();
  problem.rule = static_cast<DecodeRule>(rule), problem.weights = weights ? weights->data() : nullptr;
  expect(rows(sums) == problem.n_sums(), "the sums have another length");
  nb::gil_scoped_release release;
  operations<T>().threshold_decode(problem, n_threads);
}

template <class A, class B>
void expect_same_cube(const A& a, const B& b) {
  expect(a.shape(0) == b.shape(0) && a.shape(1) == b.shape(1) && a.shape(2) == b.shape(2),
         "the arrays must have the same shape");
}
template <class A>
int64_t depth(const A& array) {
  return static_cast<int64_t>(array.shape(2));
}

template <class T>
void sums_of_squares_(Cube<const T> X, Vector<const int64_t> offsets, Vector<const int64_t> counts, Cube<T> out,
                      int n_threads) {
  expect(rows(offsets) == rows(counts), "there must be one count per frame");
  for (int64_t i = 0; i < rows(offsets); ++i)
    expect(offsets.data()[i] >= 0 && counts.data()[i] > 0 && offsets.data()[i] + counts.data()[i] <= columns(X),
           "a frame has rows that do not exist");
  expect(rows(out) == rows(X) && columns(out) == rows(offsets) && depth(out) == depth(X), "there must be a sum per frame");
  nb::gil_scoped_release release;
  operations<T>().sums_of_squares(X.data(), rows(X), columns(X), depth(X), offsets.data(), counts.data(), rows(offsets),
                                  out.data(), n_threads);
}

// The updates of majorization_equalization.hpp.
void equalize_(Cube<const double> V, double eps0, Cube<double> w, Cube<double> h, int64_t n_updates, Cube<double> inverse,
               int n_threads) {
  const int64_t batch = rows(w), m = columns(w), k = depth(w), n = depth(h);
  expect(rows(V) == batch || rows(V) == 1, "there must be data for all, or for each of the batch");
  expect(columns(V) == m && depth(V) == n && rows(h) == batch && columns(h) == k, "data and factors do not fit");
  expect(rows(inverse) == batch && columns(inverse) == m && depth(inverse) == n, "inverse must have the shape of the model");
  nb::gil_scoped_release release;
  table->transforms.equalize(V.data(), rows(V), eps0, w.data(), h.data(), batch, m, n, k, n_updates, inverse.data(),
                             n_threads);
}

void objectives_(Cube<const double> V, double eps0, Cube<const double> inverse, Matrix<double> measures, int n_threads) {
  expect_same_cube(V, inverse);
  expect(rows(measures) == 3 && columns(measures) == rows(V), "there must be three measures");
  nb::gil_scoped_release release;
  table->transforms.objectives(V.data(), eps0, inverse.data(), rows(V), columns(V) * depth(V), measures.data(), n_threads);
}

void sum_of_solutions_(Vector<const double> diagonal, Vector<const double> beside, Vector<const double> shifts,
                       Vector<const double> scales, Matrix<const double> Y, Matrix<double> out, int n_threads) {
  const int64_t m = rows(diagonal);
  expect(m > 0 && rows(beside) == m - 1 && rows(Y) == m, "the tridiagonal matrix has another shape");
  expect(rows(shifts) == rows(scales), "there must be one scale per shift");
  expect_same_shape(Y, out);
  nb::gil_scoped_release release;
  table->transforms.sum_of_solutions(diagonal.data(), beside.data(), m, shifts.data(), scales.data(), rows(shifts), Y.data(),
                                     columns(Y), out.data(), n_threads);
}

// An iteration of transforms.hpp; `factors` are w and h, `moments` power and cross power of the frames.
using CubePair = std::pair<Cube<double>, Cube<double>>;
void transform_step_(Cube<const double> v, double eps0, Cube<double> transforms, Cube<const double> frames,
                     Cube<double> new_frames, std::optional<CubePair> factors, std::optional<CubePair> moments,
                     std::optional<CubePair> new_moments, Matrix<double> measures, int64_t n_nmf_updates,
                     int64_t n_rotations, int64_t max_trials, int n_threads) {
  const int64_t batch = rows(transforms), n_realizations = rows(v), m = columns(v), n = depth(v);
  expect(columns(transforms) == m && depth(transforms) == m, "transforms must be m x m");
  expect(rows(frames) == batch && columns(frames) == m && depth(frames) == n_realizations * n, "frames must be m x (R n)");
  expect_same_cube(frames, new_frames);
  expect(rows(measures) == (factors ? 6 : 4) && columns(measures) == batch, "there must be a row per measure");
  expect(factors.has_value() == new_moments.has_value(), "factors come with new moments");
  for (const auto& pair : {moments, new_moments})
    expect(!pair || (rows(pair->first) == batch && columns(pair->first) == m && depth(pair->first) == n &&
                     rows(pair->second) == batch && columns(pair->second) == m * (m - 1) / 2 && depth(pair->second) == n),
           "moments have another shape");
  TransformStep step{};
  step.v = v.data(), step.batch = batch, step.n_realizations = n_realizations, step.m = m, step.n = n, step.eps0 = eps0;
  step.n_nmf_updates = n_nmf_updates, step.n_rotations = n_rotations, step.max_trials = max_trials;
  step.transforms = transforms.data(), step.frames = frames.data(), step.new_frames = new_frames.data();
  if (factors && new_moments) {
    const auto& [w, h] = *factors;
    expect(rows(w) == batch && columns(w) == m && rows(h) == batch && columns(h) == depth(w) && depth(h) == n,
           "factors have another shape");
    step.k = depth(w), step.w = w.data(), step.h = h.data();
    step.new_power = new_moments->first.data(), step.new_cross = new_moments->second.data();
  }
  if (moments) step.power = moments->first.data(), step.cross = moments->second.data();
  step.measures = measures.data();
  nb::gil_scoped_release release;
  table->transforms.step(step, n_threads);
}

void* address_in(nb::handle capsule, const char* name) {
  void* address = PyCapsule_GetPointer(capsule.ptr(), name);
  if (!address) throw nb::python_error();
  return address;
}

template <class T>
void use_gemm(const char* name) {
  const nb::object capsule = nb::module_::import_("scipy.linalg.cython_blas").attr("__pyx_capi__")[name];
  *operations<T>().gemm = reinterpret_cast<Gemm<T>>(address_in(capsule, PyCapsule_GetName(capsule.ptr())));
}

// Use the operations of a module that was compiled for one instruction set.
void use(nb::handle capsule) {
  table = static_cast<const Table*>(address_in(capsule, table_name));
  use_gemm<double>("dgemm");
  use_gemm<float>("sgemm");
}

template <class T>
void bind(nb::module_& m) {
  m.def("hals_passes", &hals_passes<T>);
  m.def("hals_weighted", &hals_weighted<T>);
  m.def("hals_listed", &hals_listed<T, std::int32_t>);
  m.def("hals_listed", &hals_listed<T, int64_t>);
  m.def("listed_grams", &listed_grams<T, std::int32_t>);
  m.def("listed_grams", &listed_grams<T, int64_t>);
  m.def("block_pivoting", &block_pivoting<T>);
  m.def("csr_times", &csr_times_<T, std::int32_t>);
  m.def("csr_times", &csr_times_<T, int64_t>);
  m.def("sampled_product", &sampled_product<T, std::int32_t>);
  m.def("sampled_product", &sampled_product<T, int64_t>);
  m.def("factor_update", &factor_update<T>, nb::arg("data").none(), nb::arg("other"), nb::arg("gram"), nb::arg("order"),
        nb::arg("max_passes"), nb::arg("shrink"), nb::arg("l1"), nb::arg("initial"), nb::arg("old").none(),
        nb::arg("momentum"), nb::arg("block"), nb::arg("updated"), nb::arg("chosen"), nb::arg("chosen_gram"),
        nb::arg("updated_gram").none(), nb::arg("products").none(), nb::arg("n_threads"));
  m.def("multiply", &multiply_<T>);
  m.def("inner_product", &inner_product_<T>);
  m.def("newton_targets", &newton_targets_<T>);
  m.def("kl_newton", &kl_newton_<T>);
  m.def("ratio_terms", &ratio_terms_<T>, nb::arg("x"), nb::arg("v"), nb::arg("power").none(), nb::arg("beta"),
        nb::arg("lower_bound"));
  m.def("row_losses", &row_losses_<T>);
  m.def("column_losses", &column_losses_<T>);
  m.def("newton_terms", &newton_terms_<T>);
  m.def("line_search", &line_search_<T>);
  m.def("cap_rows", &cap_rows_<T>);
  m.def("dominating_diagonal", &dominating_diagonal_<T>);
  m.def("kl_passes", &kl_passes_<T, std::int32_t>);
  m.def("kl_passes", &kl_passes_<T, int64_t>);
  m.def("simplex_pivoting", &simplex_pivoting_<T>);
  m.def("update_cosines", &update_cosines_dense<T>);
  m.def("update_cosines", &update_cosines_sparse<T, std::int32_t>);
  m.def("update_cosines", &update_cosines_sparse<T, int64_t>);
  m.def("cluster_products", &cluster_products_dense<T>);
  m.def("cluster_products", &cluster_products_sparse<T, std::int32_t>);
  m.def("cluster_products", &cluster_products_sparse<T, int64_t>);
  m.def("threshold_decode", &threshold_decode_<T>);
  m.def("sums_of_squares", &sums_of_squares_<T>);
}

}  // namespace

NB_MODULE(_core, m) {
  m.def("use", &use);
  m.def("l1_rows", &l1_rows_);
  m.def("lowest_scores", &lowest_scores_);
  m.def("instruction_sets", [] {
    nb::list found;
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.append("avx2");
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
      found.append("avx512");
#endif
    return found;
  });
  m.def("equalize", &equalize_);
  m.def("objectives", &objectives_);
  m.def("sum_of_solutions", &sum_of_solutions_);
  m.def("transform_step", &transform_step_);
  bind<double>(m);
  bind<float>(m);
}
