#include "results/trace.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/check.hpp"
#include "workloads/collectives/rules.hpp"

// Speed: what is the same for many events (a collective's arguments, a stream's numbers) is made
// into text once. An event is then a dozen copies and integers into a buffer.

namespace fourfold {
namespace {

class Json {
  public:
    explicit Json(std::ostream& out) : out_(out) { buffer_.reserve(capacity + margin); }
    ~Json() { flush(); }
    Json(const Json&) = delete;
    Json& operator=(const Json&) = delete;

    Json& operator<<(std::string_view raw) {
        buffer_.append(raw);
        if (buffer_.size() >= capacity) flush();
        return *this;
    }
    Json& operator<<(std::integral auto number) {
        std::array<char, 24> digits;
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
        buffer_.append(digits.data(), end);
        return *this;
    }

  private:
    static constexpr std::size_t capacity = 1 << 16;
    static constexpr std::size_t margin = 1 << 12;  // so that a usual piece never reallocates

    void flush() {
        out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
        buffer_.clear();
    }

    std::ostream& out_;
    std::string buffer_;
};

std::string json_string(std::string_view text) {
    static constexpr std::string_view hex = "0123456789abcdef";
    std::string out = "\"";
    for (const char letter : text) {
        const auto code = static_cast<unsigned char>(letter);
        if (letter == '"' || letter == '\\') {
            out += '\\';
            out += letter;
        } else if (code < 0x20) {
            out += "\\u00";
            out += hex[code >> 4];
            out += hex[code & 15];
        } else {
            out += letter;
        }
    }
    return out + '"';
}

std::string to_decimal(std::integral auto number) { return std::to_string(number); }

// "[0, 1, 2]"; of more than `most`, only the first `most` and dots, as real traces have it.
std::string rank_list(std::span<const DeviceId> members, std::size_t most) {
    std::string text = "[";
    for (std::size_t i = 0; i < members.size() && i < most; ++i) {
        if (i > 0) text += ", ";
        text += to_decimal(members[i].value);
    }
    if (members.size() > most) text += ", ...";
    return text + "]";
}

struct Element {
    std::int64_t bytes;
    std::string_view name;    // as PyTorch says it
    std::string_view kernel;  // as NCCL's kernel names say it
};

Element element_of(std::int64_t bytes) {
    switch (bytes) {
        case 8:
            return {8, "Double", "f64"};
        case 4:
            return {4, "Float", "f32"};
        case 2:
            return {2, "BFloat16", "bf16"};
        default:
            return {1, "Byte", "u8"};
    }
}

struct Names {
    std::string_view collective;  // of the process group's call
    std::string_view kernel;
    bool reduces;
};

Names names_of_kind(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::all_reduce:
            return {"allreduce", "AllReduce", true};
        case CollectiveKind::reduce_scatter:
            return {"reduce_scatter", "ReduceScatter", true};
        case CollectiveKind::all_gather:
            return {"_allgather_base", "AllGather", false};
        case CollectiveKind::all_to_all:
            return {"all_to_all", "SendRecv", false};
        case CollectiveKind::broadcast:
            return {"broadcast", "Broadcast", false};
    }
    FOURFOLD_CHECK(false);
}

// "RING": NCCL's kernels carry the algorithm in capitals.
std::string algorithm_of(const Transfer& transfer) {
    for (const Algorithm* algorithm : algorithms()) {
        if (&algorithm->rule != transfer.rule) continue;
        std::string name(algorithm->name);
        for (char& letter : name) {
            if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
        }
        return name;
    }
    return "OTHER";
}

constexpr std::size_t ranks_shown = 30;  // in "Process Group Ranks", as PyTorch cuts it

using GroupIndex = std::uint32_t;

// What a part and all parts like it say.
struct Texts {
    std::string name;       // the kernel's, with its opening quote
    std::string arguments;  // behind it comes "Seq"
};

class Writer {
  public:
    Writer(std::ostream& out, const Graph& graph, const Lowered& lowered, const Timeline& timeline,
           const TraceOptions& options)
        : json_(out),
          graph_(graph),
          lowered_(lowered),
          program_(lowered.program),
          timeline_(timeline),
          options_(options) {}

    void run() {
        find_lanes();
        find_groups();
        describe_transfers();
        place_tasks();
        write_head();
        write_metadata();
        write_steps();
        for (const TaskId task : timeline_.begin.keys()) write_task(task);
        write_tail();
    }

  private:
    struct Slice {
        std::int64_t begin = 0, end = 0;  // ps; nanoseconds are these / 1000, rounded down
        [[nodiscard]] std::int64_t begin_ns() const { return begin / 1000; }
        [[nodiscard]] std::int64_t end_ns() const { return end / 1000; }
        [[nodiscard]] bool has_length() const { return end_ns() > begin_ns(); }
    };
    struct ProcessGroup {
        std::uint8_t lane = 0;
        std::span<const DeviceId> members;
        std::uint32_t calls = 0;
    };

    static std::int64_t ps(Time time) { return time.time_since_epoch().count(); }

    // Lane 0 of Perfetto's threads is the idle one, so ours count from 1.
    static std::uint32_t thread_of(std::uint8_t lane) { return lane + 1U; }
    static constexpr std::uint32_t step_thread = 256;  // beyond all lanes

    static std::string lane_name(std::uint8_t lane) {
        return lane < lane_count ? std::string(name_of(static_cast<Lane>(lane)))
                                 : "stream " + to_decimal(lane);
    }

    // ---- What there is

    void find_lanes() {
        used_streams_.resize(program_.streams().size());
        works_.resize(graph_.devices().size());
        for (const TaskId task : timeline_.begin.keys()) {
            used_streams_[program_.stream(task)] = 1;
            works_[program_.device(task)] = 1;
        }
        for (const DeviceId device : works_.keys()) {
            if (works_[device] != 0) ranks_ = device.value + 1;
        }
        stream_texts_.resize(program_.streams().size());
        for (const StreamId id : program_.streams().keys()) {
            const auto [device, lane] = program_.streams()[id];
            const std::string thread = to_decimal(thread_of(lane));
            const std::string rank = to_decimal(device.value);
            place_texts_.push_back("\",\"pid\":" + rank + ",\"tid\":" + thread + ",\"ts\":");
            stream_texts_[id] =
                ",\"args\":{\"stream\":" + thread + ",\"device\":" + rank + ",\"correlation\":";
        }
    }

    // A process group is what frameworks make of a set of ranks: one communicator with a stream of
    // its own. Members call in the order of their stream, so the k-th call is the same for all.
    void find_groups() {
        group_of_.resize(program_.collectives().size());
        sequence_.resize(program_.collectives().size());
        arrival_.resize(program_.collectives().size());
        std::map<std::pair<std::uint8_t, std::vector<DeviceId>>, GroupIndex> known;
        for (const TaskId task : timeline_.begin.keys()) {
            if (program_.kind(task) != TaskKind::part) continue;
            const CollectiveId id = program_.collective(task);
            arrival_[id] = std::max(arrival_[id], ps(timeline_.begin[task]));
            if (program_.parts(id).front() != task) continue;
            const Team& team = program_.teams()[program_.transfer_of(id).team];
            const std::uint8_t lane = program_.streams()[program_.stream(task)].lane;
            const TeamId team_id = program_.transfer_of(id).team;
            const auto [fast, unseen] = team_groups_.try_emplace({team_id, lane}, GroupIndex{0});
            if (unseen) {
                const auto [entry, is_new] = known.try_emplace(
                    {lane, team.members}, static_cast<GroupIndex>(groups_.size()));
                if (is_new) groups_.push_back({lane, team.members, 0});
                fast->second = entry->second;
            }
            group_of_[id] = fast->second;
            sequence_[id] = ++groups_[fast->second].calls;
        }
    }

    // A collective belongs to one group, but the same transfer may be called in several.
    void describe_transfers() {
        transfer_texts_.resize(program_.collectives().size());
        std::map<std::pair<TransferId, GroupIndex>, std::uint32_t> known;
        for (const CollectiveId id : program_.collectives().keys()) {
            const TransferId transfer = program_.collectives()[id].transfer;
            const auto [entry, is_new] = known.try_emplace(
                {transfer, group_of_[id]}, static_cast<std::uint32_t>(texts_.size()));
            if (is_new) texts_.push_back(describe(id));
            transfer_texts_[id] = entry->second;
        }
    }

    // Gradients are reduced in their own precision, norms in single, everything else is activations
    // or weights.
    [[nodiscard]] Element element(const Label& label, CollectiveKind kind, Bytes bytes) const {
        const bool of_gradients =
            label.axis == Axis::data || label.pass == Pass::update || label.axis == Axis::sharding;
        const bool gathers = kind == CollectiveKind::all_gather;
        const Element found = element_of(label.axis == Axis::norm   ? 4
                                         : of_gradients && !gathers ? options_.gradient_bytes
                                                                    : options_.activation_bytes);
        return bytes.value % found.bytes == 0 ? found : element_of(1);
    }

    Texts describe(CollectiveId id) const {
        const Transfer& transfer = program_.transfer_of(id);
        const ProcessGroup& group = groups_[group_of_[id]];
        const auto members = static_cast<std::int64_t>(group.members.size());
        const bool planned = transfer.plan.table.size() >= plan_head;
        const CollectiveKind kind = planned ? kind_of(transfer.plan) : CollectiveKind::all_reduce;
        const Element unit =
            element(lowered_.labels[program_.parts(id).front()], kind, transfer.bytes);
        const std::int64_t whole = transfer.bytes.value / unit.bytes;
        const std::int64_t share = ceil_div(Bytes{whole}, members).value;
        const Names names = names_of_kind(kind);

        Texts texts;
        texts.name = "\"ncclDevKernel_" + std::string(names.kernel);
        if (names.reduces) texts.name += "_Sum_" + std::string(unit.kernel);
        if (kind != CollectiveKind::all_to_all) texts.name += "_" + algorithm_of(transfer) + "_LL";
        texts.arguments =
            ",\"Collective name\":" + json_string(names.collective) +
            ",\"In msg nelems\":" + to_decimal(kind == CollectiveKind::all_gather ? share : whole) +
            ",\"Out msg nelems\":" +
            to_decimal(kind == CollectiveKind::reduce_scatter ? share : whole) +
            ",\"Group size\":" + to_decimal(members) + ",\"dtype\":" + json_string(unit.name) +
            ",\"Process Group Name\":\"" + to_decimal(group_of_[id]) +
            "\",\"Process Group Description\":" + json_string(lane_name(group.lane)) +
            ",\"Process Group Ranks\":" + json_string(rank_list(group.members, ranks_shown)) +
            ",\"Bytes\":" + to_decimal(transfer.bytes.value) + ",\"Seq\":";
        return texts;
    }

    void place_tasks() {
        slices_.resize(timeline_.begin.size());
        IdVector<StreamId, std::int64_t> free_at(program_.streams().size(), 0);
        for (const TaskId task : timeline_.begin.keys()) {
            std::int64_t& free = free_at[program_.stream(task)];
            const std::int64_t end = ps(timeline_.end[task]);
            slices_[task] = {std::min(std::max(ps(timeline_.begin[task]), free), end), end};
            free = std::max(free, end);
        }
    }

    // ---- Text

    void write_head() {
        json_ << "{\"schemaVersion\":1,\n\"deviceProperties\":[";
        for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
            json_ << (rank > 0 ? ",\n" : "\n") << "{\"id\":" << rank
                  << ",\"name\":" << json_string(options_.device.name)
                  << ",\"totalGlobalMem\":" << options_.device.memory.value
                  << ",\"numSms\":" << options_.device.multiprocessors << "}";
        }
        json_ << "],\n\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":0,\"world_size\":"
              << ranks_ << ",\"pg_count\":" << groups_.size() << ",\"pg_config\":[";
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            const ProcessGroup& group = groups_[i];
            json_ << (i > 0 ? ",\n" : "\n") << "{\"pg_name\":\"" << i
                  << "\",\"pg_desc\":" << json_string(lane_name(group.lane))
                  << ",\"backend_config\":\"cuda:nccl\",\"pg_size\":" << group.members.size()
                  << ",\"ranks\":" << rank_list(group.members, group.members.size()) << "}";
        }
        json_ << "]},\n\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":0,\"traceName\":"
              << json_string(options_.name) << ",\n\"traceEvents\":[";
    }

    void write_tail() { json_ << "\n]}\n"; }

    void begin_event() {
        json_ << (first_event_ ? "\n" : ",\n");
        first_event_ = false;
    }

    // Microseconds with three digits.
    void write_ns(std::int64_t ns) {
        const auto digit = [](std::int64_t value) { return static_cast<char>('0' + value % 10); };
        const std::array<char, 4> rest = {'.', digit(ns / 100), digit(ns / 10), digit(ns)};
        json_ << ns / 1000 << std::string_view(rest.data(), rest.size());
    }

    void write_name(std::string_view kind, std::uint32_t rank, std::uint32_t thread,
                    const std::string& argument) {
        begin_event();
        json_ << "{\"ph\":\"M\",\"name\":\"" << kind << "\",\"pid\":" << rank
              << ",\"tid\":" << thread << ",\"ts\":0.000,\"args\":{" << argument << "}}";
    }

    void write_metadata() {
        for (const DeviceId device : works_.keys()) {
            if (works_[device] == 0) continue;
            const std::uint32_t rank = device.value;
            const std::string& vertex = graph_[graph_.devices()[rank]].name;
            write_name("process_name", rank, 0,
                       "\"name\":" + json_string("rank " + to_decimal(rank) + " (" + vertex + ")"));
            write_name("process_sort_index", rank, 0, "\"sort_index\":" + to_decimal(rank));
            write_name("thread_name", rank, step_thread, "\"name\":\"step\"");
            write_name("thread_sort_index", rank, step_thread, "\"sort_index\":0");
        }
        for (const StreamId id : used_streams_.keys()) {
            if (used_streams_[id] == 0) continue;
            const auto [device, lane] = program_.streams()[id];
            write_name("thread_name", device.value, thread_of(lane),
                       "\"name\":" + json_string(lane_name(lane)));
            write_name("thread_sort_index", device.value, thread_of(lane),
                       "\"sort_index\":" + to_decimal(thread_of(lane)));
        }
    }

    void write_steps() {
        const std::int64_t end = ps(timeline_.finish) / 1000;
        for (const DeviceId device : works_.keys()) {
            if (works_[device] == 0) continue;
            begin_event();
            json_ << "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#0\","
                     "\"pid\":"
                  << device.value << ",\"tid\":" << step_thread << ",\"ts\":0.000,\"dur\":";
            write_ns(end);
            json_ << "}";
        }
    }

    void write_label(const Label& label) {
        json_ << name_of(label.pass);
        if (label.micro_batch != Label::none) json_ << " mb " << label.micro_batch;
        json_ << " stage " << label.stage;
    }

    void write_task(TaskId task) {
        const Label& label = lowered_.labels[task];
        const Slice& slice = slices_[task];
        const StreamId stream = program_.stream(task);
        const TaskKind kind = program_.kind(task);
        begin_event();
        json_ << "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":";
        switch (kind) {
            case TaskKind::compute:
                json_ << "\"";
                break;
            case TaskKind::send:
            case TaskKind::receive:
                json_ << "\"ncclDevKernel_SendRecv ";
                break;
            case TaskKind::part:
                json_ << texts_[transfer_texts_[program_.collective(task)]].name << " ";
                break;
        }
        if (kind != TaskKind::compute) json_ << name_of(label.axis) << " ";
        write_label(label);
        json_ << place_texts_[stream.value];
        write_ns(slice.begin_ns());
        json_ << ",\"dur\":";
        write_ns(slice.end_ns() - slice.begin_ns());
        json_ << stream_texts_[stream] << task.value << ",\"begin_ps\":" << slice.begin
              << ",\"end_ps\":" << slice.end << ",\"axis\":\"" << name_of(label.axis)
              << "\",\"pass\":\"" << name_of(label.pass) << "\",\"stage\":" << label.stage;
        if (label.micro_batch != Label::none) json_ << ",\"micro_batch\":" << label.micro_batch;
        switch (kind) {
            case TaskKind::compute:
                break;
            case TaskKind::send:
                write_message(task, task);
                break;
            case TaskKind::receive:
                write_message(program_.partner(task), task);
                break;
            case TaskKind::part: {
                const CollectiveId id = program_.collective(task);
                // A member may be done without the last one: the root of a broadcast, say.
                const std::int64_t all_here = std::min(arrival_[id], ps(timeline_.end[task]));
                json_ << texts_[transfer_texts_[id]].arguments << sequence_[id]
                      << ",\"wait_ps\":" << all_here - ps(timeline_.begin[task]);
                break;
            }
        }
        json_ << "}}";
        if (kind == TaskKind::send) {
            const TaskId receive = program_.successors(task).front();
            write_flow(task, task, receive, "s");
        } else if (kind == TaskKind::receive) {
            write_flow(task, program_.partner(task), task, "f");
        }
    }

    void write_message(TaskId send, TaskId self) {
        const bool sends = send == self;
        const TaskId receive = program_.successors(send).front();
        const Bytes bytes = program_.transfers()[program_.transfer(send)].bytes;
        const Element unit = element(lowered_.labels[send], CollectiveKind::all_to_all, bytes);
        json_ << (sends ? ",\"Collective name\":\"send\"" : ",\"Collective name\":\"recv\"")
              << ",\"In msg nelems\":" << bytes.value / unit.bytes
              << ",\"Out msg nelems\":" << bytes.value / unit.bytes
              << ",\"Group size\":2,\"dtype\":\"" << unit.name
              << "\",\"Src Rank\":" << program_.device(send).value
              << ",\"Dst Rank\":" << program_.device(receive).value << ",\"Bytes\":" << bytes.value;
    }

    // Both ends at the beginning of their slices; readers look for the slice around an instant, and
    // an empty one has no inside.
    void write_flow(TaskId self, TaskId send, TaskId receive, std::string_view phase) {
        if (!slices_[send].has_length() || !slices_[receive].has_length()) return;
        begin_event();
        json_ << "{\"ph\":\"" << phase << "\",\"id\":" << send.value
              << ",\"cat\":\"message\",\"name\":\"message"
              << place_texts_[program_.stream(self).value];
        write_ns(slices_[self].begin_ns());
        json_ << (self == receive ? ",\"bp\":\"e\"}" : "}");
    }

    Json json_;
    const Graph& graph_;
    const Lowered& lowered_;
    const Program& program_;
    const Timeline& timeline_;
    const TraceOptions& options_;
    bool first_event_ = true;

    std::uint32_t ranks_ = 0;
    IdVector<DeviceId, std::uint8_t> works_;
    IdVector<StreamId, std::uint8_t> used_streams_;
    std::vector<std::string> place_texts_;          // by stream: from the name's end to "ts"
    IdVector<StreamId, std::string> stream_texts_;  // from "args" to its correlation
    std::vector<ProcessGroup> groups_;
    std::map<std::pair<TeamId, std::uint8_t>, GroupIndex> team_groups_;
    IdVector<CollectiveId, GroupIndex> group_of_;
    IdVector<CollectiveId, std::uint32_t> sequence_;
    IdVector<CollectiveId, std::int64_t> arrival_;  // of the last member, ps
    IdVector<CollectiveId, std::uint32_t> transfer_texts_;
    std::vector<Texts> texts_;
    IdVector<TaskId, Slice> slices_;
};

}  // namespace

void write_trace(std::ostream& out, const Graph& graph, const Lowered& lowered,
                 const Timeline& timeline, const TraceOptions& options) {
    Writer(out, graph, lowered, timeline, options).run();
}

}  // namespace fourfold
