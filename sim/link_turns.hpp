#pragma once

// Links that serve messages in turns, a quantum each: of the messages that wait for a link, the
// next in the round passes at most `quantum` bytes, then goes to the round's end. So a small
// message waits for a quantum of a large one, not for all of it. A link rests only while no byte
// waits.
//
//     one after the other   AAAAAAAAAAAAAAAAAAAAAAAA bb CCCCCC
//     in turns              AAAA bb CCCC AAAA CC AAAA AAAA ...
//
// A piece goes on like a message: its head leaves a link `latency` after it was served, and takes
// its place in the next link's round. Rounding adds nothing: pieces that follow each other without
// a pause end when their sum would, and a message that nobody came between arrives when the whole
// one would.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/link_model.hpp"

namespace fourfold {

class LinkTurns {
  public:
    /// `changes` is borrowed. Requires: no link fails.
    LinkTurns(Run& run, const LinkChanges& changes, Bytes quantum);

    /// A message whose head is at the first link of `path`, which is borrowed until it is
    /// delivered. `message`: any number that is not on its way. Returns: the piece that `join`
    /// takes.
    std::uint32_t enter(std::uint32_t message, std::span<const LinkId> path, Bytes bytes,
                        double stretch);
    [[nodiscard]] std::uint32_t message_of(std::uint32_t piece) const {
        return pieces_[piece].message;
    }

    /// The piece's head is at its next link, and takes its message's place in the round, or one at
    /// the end.
    void join(std::uint32_t piece);
    /// A link that pieces wait for is free (an event `link_free`).
    void wake(LinkId link);

    /// A message whose last byte leaves its first link.
    struct Departure {
        std::uint32_t message;
        Time at;
    };
    /// Serves what has joined in this instant, as far as links are free. Pushes `hop` for pieces,
    /// `delivery` for messages.
    /// Returns: good until the next call.
    std::span<const Departure> serve();

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    struct Piece {
        std::uint32_t message, hop;  // the link path[hop]
        Bytes bytes;
        Time tail;           // when its last byte has passed the links so far
        std::uint32_t next;  // of its message, that waits for the same link
    };
    struct Place {
        std::uint32_t message = none, hop = 0;
        friend bool operator==(const Place&, const Place&) = default;
    };
    struct Turn {                                 // of one message at one link
        std::uint32_t first = none, last = none;  // pieces that wait
        Bytes passed{};                           // bytes that were served
        bool in_round = false;                    // waits, or is being served
        Place next;                               // in the round
    };
    struct Course {  // of one message
        std::span<const LinkId> path;
        Bytes bytes;
        double stretch;
        Time whole_tail;  // when it is over, if nobody comes between
        bool whole;
        std::vector<Turn> turns;  // of each link
    };
    struct Port {
        Place first, last;  // of the round
        Place serving;      // until free_at, and more of it will come
        Place served;       // the last one
        Time free_at{};
        Time busy_since{};  // pieces and their sum since then, without a pause
        Bytes busy_with{};
        bool touched = false, will_wake = false;
    };

    Turn& turn(Place place) { return courses_[place.message].turns[place.hop]; }
    std::uint32_t add_piece(const Piece& piece);
    void touch(LinkId link);
    void append(Port& port, Place place);
    void end_turn(Port& port);
    void serve_next(LinkId link);
    std::uint32_t take_piece(Turn& turn);

    Run& run_;
    const LinkChanges& changes_;
    Bytes quantum_;
    std::vector<Piece> pieces_;
    std::vector<std::uint32_t> free_pieces_;
    std::vector<Course> courses_;
    IdVector<LinkId, Port> ports_;
    std::vector<LinkId> touched_;
    std::vector<Departure> departures_;
};

}  // namespace fourfold
