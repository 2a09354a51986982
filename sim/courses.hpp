#pragma once

// Calls that nobody can disturb go alike if their members begin alike: the course of each is
// simulated once, message by message, in a program of its own.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/program.hpp"
#include "topology/graph.hpp"

namespace fourfold {

/// From the begin of the first member's steps.
struct Course {
    std::vector<Duration> ends;  // of each member
    struct Load {
        LinkId link;
        Bytes bytes{};
        Duration busy{};
    };
    std::vector<Load> loads;
    std::uint64_t messages = 0;
    bool in_range = true;  // of what the clock can hold; else there is nothing more in it
};

class Courses {
  public:
    /// Both are borrowed and must outlive this.
    Courses(const Graph& graph, const Program& program)
        : graph_(&graph), program_(&program), known_(program.transfers().size()) {}

    /// Whether calls of this transfer begin alike often enough.
    [[nodiscard]] bool recur(TransferId id) const {
        return known_[id].courses.size() <= 16 + known_[id].asked / 2;
    }
    /// `begins`: of each member, after the first.
    const Course& course(TransferId id, const std::vector<Duration>& begins);

  private:
    struct Known {
        std::map<std::vector<Duration>, Course> courses;
        std::size_t asked = 0;
    };
    const Graph* graph_;
    const Program* program_;
    IdVector<TransferId, Known> known_;
};

}  // namespace fourfold
