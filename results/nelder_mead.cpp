#include "results/nelder_mead.hpp"

// The simplex method of Nelder and Mead 1965, "A simplex method for function minimization", The
// Computer Journal 7: n + 1 points walk downhill, because the worst of them is mirrored at the
// centre c of the others, further out if that is the best yet, half way if it is no good:
//
//     worst ----- inside ----- c ----- outside ----- mirrored ----------- far
//       -1         -1/2        0         1/2            1                  2
//
// and where nothing helps, all points move half way to the best.
//
// A simplex can collapse on a slope, above all where the function has kinks. So a new one is put up
// where the last one stopped, with its edges the other way round, until that gains nothing.

#include <algorithm>
#include <cmath>
#include <utility>

#include "topology/check.hpp"

namespace fourfold {
namespace {

constexpr double spread_min = 1e-9;     // of values in a simplex, relative to the best
constexpr std::size_t moves_max = 300;  // of a simplex, for each number
constexpr double gain_min = 1e-6;       // of a new simplex, relative
constexpr int simplexes_max = 12;

std::vector<double> between(std::span<const double> from, std::span<const double> to,
                            double share) {
    std::vector<double> point(from.size());
    for (std::size_t i = 0; i < point.size(); ++i) {
        point[i] = from[i] + share * (to[i] - from[i]);
    }
    return point;
}

// Points in order of their values; equal values keep the order in which they were found.
class Simplex {
  public:
    Simplex(const Objective& objective, Minimum start, std::span<const double> steps, double sign)
        : objective_(&objective), points_{std::move(start)} {
        for (std::size_t i = 0; i < steps.size(); ++i) {
            std::vector<double> at = points_.front().at;
            at[i] += sign * steps[i];
            points_.push_back(evaluated(std::move(at)));
        }
        sort();
    }

    [[nodiscard]] const Minimum& best() const { return points_.front(); }
    [[nodiscard]] bool collapsed() const {
        return points_.back().value - best().value <= spread_min * std::abs(best().value);
    }

    void move() {
        const Minimum& worst = points_.back();
        const std::vector<double> centre = centre_of_others();
        Minimum mirrored = evaluated(between(centre, worst.at, -1));
        if (mirrored.value < best().value) {
            Minimum far = evaluated(between(centre, worst.at, -2));
            return replace_worst(far.value < mirrored.value ? std::move(far) : std::move(mirrored));
        }
        const Minimum& second_worst = points_[points_.size() - 2];
        if (mirrored.value < second_worst.value) return replace_worst(std::move(mirrored));
        const bool outside = mirrored.value < worst.value;
        Minimum half = evaluated(between(centre, worst.at, outside ? -0.5 : 0.5));
        if (half.value < std::min(mirrored.value, worst.value)) {
            return replace_worst(std::move(half));
        }
        shrink();
    }

  private:
    const Objective* objective_;  // the caller's, for as long as the search lasts
    std::vector<Minimum> points_;

    [[nodiscard]] Minimum evaluated(std::vector<double> at) const {
        const double value = (*objective_)(at);
        FOURFOLD_CHECK(std::isfinite(value));
        return {std::move(at), value};
    }
    void sort() { std::ranges::stable_sort(points_, {}, &Minimum::value); }
    void replace_worst(Minimum point) {
        points_.back() = std::move(point);
        sort();
    }
    void shrink() {
        for (std::size_t i = 1; i < points_.size(); ++i) {
            points_[i] = evaluated(between(best().at, points_[i].at, 0.5));
        }
        sort();
    }
    [[nodiscard]] std::vector<double> centre_of_others() const {
        std::vector<double> centre(best().at.size());
        const auto others = static_cast<double>(points_.size() - 1);
        for (std::size_t point = 0; point + 1 < points_.size(); ++point) {
            for (std::size_t i = 0; i < centre.size(); ++i) {
                centre[i] += points_[point].at[i] / others;
            }
        }
        return centre;
    }
};

}  // namespace

Minimum nelder_mead(const Objective& objective, std::vector<double> start,
                    std::span<const double> steps) {
    FOURFOLD_CHECK(!start.empty() && start.size() == steps.size());
    const double first = objective(start);
    FOURFOLD_CHECK(std::isfinite(first));
    Minimum best{std::move(start), first};
    int without_gain = 0;
    for (int round = 0; round < simplexes_max && without_gain < 2; ++round) {
        Simplex simplex(objective, best, steps, round % 2 == 0 ? 1 : -1);
        for (std::size_t moves = 0; moves < moves_max * steps.size(); ++moves) {
            if (simplex.collapsed()) break;
            simplex.move();
        }
        const double gain = best.value - simplex.best().value;
        without_gain = gain > gain_min * std::abs(best.value) ? 0 : without_gain + 1;
        best = simplex.best();
    }
    return best;
}

}  // namespace fourfold
