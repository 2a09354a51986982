#pragma once

// The link graph as Boost.Graph sees it. Apart from graph.hpp, which everything includes, because
// Boost.Graph's headers are large.

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <cstdint>

#include "topology/graph.hpp"

namespace fourfold {

struct Adjacency {
    /// An edge's property is its LinkId. Both directions: routes are searched from either end.
    using Boost =
        boost::compressed_sparse_row_graph<boost::bidirectionalS, boost::no_property, LinkId,
                                           boost::no_property, std::uint32_t, std::uint32_t>;
    Boost graph;
};

}  // namespace fourfold
