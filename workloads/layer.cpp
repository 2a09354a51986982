#include "workloads/layer.hpp"

// The kernels of one device of a tensor group, and the host time to issue them. No communication.
//
// N = micro_batch * sequence / context tokens. Per device: ad = (a / t) d, the width of its
// queries; qkv = ad and twice the width of its keys; f = ffn / t; V = its vocabulary; S2 =
// micro_batch (a / t) s^2 scores (with a cut sequence micro_batch (a / t) s^2 / context); hs = h /
// t with sequence parallelism, else h. Numbers are bytes, of 16-bit activations; "x 2" = launches,
// if not one. G(m, n, k) is a matrix multiplication.
//
//   site                  forward                       input gradient          weight gradient (W)
//   attention_norm        4N hs                         6N hs x 2 + add 6N hs
//   attention_qkv         G(N, qkv, h) + bias 4N qkv    G(N, h, qkv)            W + bias 2N qkv
//   attention_core        see below                     see below
//   attention_projection  G(N, h, ad)                   G(N, ad, h)             W + bias 2N h
//   attention_residual    7N hs (6 without dropout)     dropout 5N hs
//   mlp_norm              4N hs                         6N hs x 2 + add 6N hs
//   mlp_first             G(N, f, h)                    G(N, h, f)              W + bias 2N f
//   mlp_activation        4N f                          6N f
//   mlp_second            G(N, h, f)                    G(N, f, h)              W + bias 2N h
//   mlp_residual          7N hs (6 without dropout)     dropout 5N hs
//   embedding             lookup 4N h, positions 6N h                           8N h, dropout 5N hs
//                         dropout 5N hs                                         positions 4N h
//   final_norm            4N hs                         6N hs x 2
//   head                  G(N, V, h)                    G(N, h, V)              W
//   loss                  to fp32 6N V, entropy 32N V   14N V
//   optimizer             per parameter that the device owns, 48: fp16 or bf16 Adam with an fp32
//                         master: unscale 6, norm 4, Adam 28, copy back 6, zero 4
//   Bytes of loss and optimizer, and the speed of normalizations, are those of a framework without
//   a profile; profiles change them.
//
//   W: G(outputs, inputs, N), and the accumulation of its result over micro-batches:
//      2 bytes a parameter where the gradient is fp32 (fused into the GEMM; 2 is what it moves more
//      than a 16-bit result), 6 where it is 16 bit (a separate `+=`).
//   A gated MLP has 2f outputs of mlp_first, and its activation moves 6N f forward (gate and up in,
//   product out) and 10N f backward (their gradients too).
//   Nobody waits for an input gradient of the embedding: all of its backward is weight gradient.
//   Biases after the activation and after the residual add are part of those kernels. Bias
//   gradients read the whole gathered gradient, with sequence parallelism too.
//
//   attention core, unfused (bmm: micro_batch (a/t) matrices)
//     forward: bmm(s, s, d) and the empty result it adds to | softmax 4 S2 | dropout 5 S2 |
//              bmm(s, d, s) | transposing copy 4N ad
//     gradient: copy 4N ad | bmm(s, s, d), bmm(s, d, s) | dropout 5 S2 | softmax 6 S2 |
//              2 bmm(s, d, s) | gradients of q, k, v 4N qkv x 3
//     The fused scale-mask-softmax needs a multiple of 4 matrices and s <= 2048 (Megatron-LM,
//     fused_softmax.py); else scale, mask and casts are kernels of their own: 22 S2 x 7, and 16 S2
//     x 4 backward. Key and value heads that a group of query heads shares are read as they are.
//   flash: one kernel each way (causal).
//   Rotary positions are not charged: their kernel was in none of the measurements behind this.
//
// Source of the bytes and launches: reads and writes of the kernels of Megatron-LM (2021-2022;
// Narayanan et al. 2021, sec. 4.2, Korthikanti et al. 2022, sec. 4), checked against the layer
// times of Korthikanti et al. table 4 (layer_test). The vocabulary is
// padded (training_step.hpp).
//
// Recomputation repeats the forward in front of the backward: all of it (full), or the attention
// core (selective). Flash attention already recomputes its scores inside its backward kernel, so
// selective adds nothing to it.
//
// Measured times replace the kernels, split evenly over the four matrices (head: over head and
// loss) so that the collectives around those keep their places; the split does not change the sum.
// Of a measured layer, full recomputation repeats the measured forward; selective is taken to be in
// the measured input gradient, because no part of a measured time is known to be the core's. FLOPs
// stay those of the model's matrices.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "workloads/kernels.hpp"

namespace fourfold {
namespace {

constexpr double accumulate_fused_bytes = 2;  // a parameter and micro-batch, above the GEMM's own
constexpr double accumulate_separate_bytes = 6;  // read sum, read gradient, write sum, 16 bit each

constexpr std::int64_t softmax_batch_multiple = 4;
constexpr std::int64_t softmax_sequence_max = 2048;

// Small kernels around the big ones, each too small for its bytes to count.
constexpr int masked_lookup_launches = 4;  // compare, shift, look up, zero (vocabulary-parallel)
constexpr int entropy_launches = 10;       // max, subtract, mask, gather, exp, sum, log, ...
constexpr int entropy_backward_launches = 4;
constexpr int norm_backward_launches = 2;  // of the input; of gain and shift

std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Sizes on one device, named as in the table above.
struct Shape {
    std::int64_t tokens, hidden, query, qkv, first, second, vocab;  // first: outputs of mlp_first
    std::int64_t queries, keys, head_dim, core_batch;
    double n, h, hs, scores;
};

Shape shape_of(const TrainingStep& step) {
    const Transformer& model = step.model;
    const std::int64_t t = step.split.tensor;
    const std::int64_t d = head_dim(model);
    const std::int64_t heads = ceil_of(model.heads, t);
    // Fewer key and value heads than tensor ranks: each rank keeps a copy of one.
    const std::int64_t kv_heads = ceil_of(model.kv_heads, t);
    const std::int64_t ffn = ceil_of(model.ffn, t);
    const std::int64_t parts = step.split.vocabulary_parallel ? t : 1;

    Shape shape{};
    shape.tokens = step.tokens();
    shape.hidden = model.hidden;
    shape.query = heads * d;
    shape.qkv = (heads + 2 * kv_heads) * d;
    shape.first = (model.mlp == Mlp::swiglu ? 2 : 1) * ffn;
    shape.second = ffn;
    shape.vocab = padded_vocabulary(step) / parts;
    shape.queries = model.sequence / step.split.context;
    shape.keys = model.sequence;
    shape.head_dim = d;
    shape.core_batch = step.micro_batch * heads;
    shape.n = static_cast<double>(shape.tokens);
    shape.h = static_cast<double>(model.hidden);
    shape.hs = step.split.sequence_parallel ? shape.h / static_cast<double>(t) : shape.h;
    shape.scores = static_cast<double>(shape.core_batch) * static_cast<double>(shape.queries) *
                   static_cast<double>(shape.keys);
    return shape;
}

struct Work {
    double seconds = 0;
    double flops = 0;
    double host = 0, lead = 0;  // see Operation
    Work& operator+=(const Work& other) {
        lead = std::max(lead, host + other.lead - seconds);
        seconds += other.seconds;
        flops += other.flops;
        host += other.host;
        return *this;
    }
    friend Work operator+(Work a, const Work& b) { return a += b; }
};

/// Makes the kernels of one pass of a training step.
struct Kernels {
    const TrainingStep& step;
    double launch_s;
    Shape at;

    Kernels(const TrainingStep& of, Pass pass)
        : step(of), launch_s(launch_seconds(of.framework.host, pass)), at(shape_of(of)) {}

    [[nodiscard]] Work kernel(double seconds, double flops, int launches) const {
        const Host& host = step.framework.host;
        const double issue = launches * launch_s;
        if (host.blocking) return {seconds + issue + to_seconds(host.wait), flops};
        return {seconds, flops, issue, issue};
    }

    [[nodiscard]] Work gemm(const Gemm& shape) const {
        return kernel(gemm_time(shape, step.device), flops(shape), 1);
    }
    /// A linear layer of so many outputs and inputs, and its gradient with respect to the inputs.
    [[nodiscard]] Work linear(std::int64_t outputs, std::int64_t inputs) const {
        return gemm({.m = at.tokens, .n = outputs, .k = inputs, .layout = GemmLayout::tn});
    }
    [[nodiscard]] Work linear_backward(std::int64_t outputs, std::int64_t inputs) const {
        return gemm({.m = at.tokens, .n = inputs, .k = outputs, .layout = GemmLayout::nn});
    }
    [[nodiscard]] Work memory(double bytes, int launches = 1) const {
        return kernel(memory_time(bytes, step.device, launches), 0, launches);
    }
    [[nodiscard]] Work weight(std::int64_t outputs, std::int64_t inputs) const {
        const double bytes = step.framework.accumulate_bytes.value_or(
            step.gradient_bytes >= 4 ? accumulate_fused_bytes : accumulate_separate_bytes);
        const Work product =
            gemm({.m = outputs, .n = inputs, .k = at.tokens, .layout = GemmLayout::nt});
        if (bytes == 0) return product;
        return product + memory(bytes * static_cast<double>(outputs) * static_cast<double>(inputs));
    }
    [[nodiscard]] Work weight_and_bias(std::int64_t outputs, std::int64_t inputs) const {
        Work work = weight(outputs, inputs);
        if (step.model.bias) work += memory(2 * at.n * static_cast<double>(outputs));
        return work;
    }
    [[nodiscard]] Work norm_forward() const {
        return memory(4 * at.n * at.hs / step.framework.norm_forward);
    }
    [[nodiscard]] Work norm_backward() const {
        return memory(6 * at.n * at.hs / step.framework.norm_backward, norm_backward_launches);
    }
    [[nodiscard]] Work norm_and_residual_backward() const {
        return norm_backward() + memory(6 * at.n * at.hs);
    }
    [[nodiscard]] Work residual_forward() const {
        return memory((step.model.dropout ? 7 : 6) * at.n * at.hs);
    }
    [[nodiscard]] Work dropout_backward() const { return memory(5 * at.n * at.hs); }

    [[nodiscard]] bool flash() const { return is_flash(step.model); }
    [[nodiscard]] FlashCore flash_core() const {
        return {.batch_heads = at.core_batch,
                .queries = at.queries,
                .keys = at.keys,
                .head_dim = at.head_dim,
                .first_generation = step.model.attention == Attention::flash_1};
    }
    [[nodiscard]] bool fused_softmax() const {
        return step.framework.fused_softmax && at.core_batch % softmax_batch_multiple == 0 &&
               at.keys <= softmax_sequence_max;
    }
    [[nodiscard]] Work bmm_to_scores() const {
        return gemm({.m = at.queries,
                     .n = at.keys,
                     .k = at.head_dim,
                     .batch = at.core_batch,
                     .layout = GemmLayout::tn});
    }
    [[nodiscard]] Work bmm_from_scores() const {
        return gemm({.m = at.queries,
                     .n = at.head_dim,
                     .k = at.keys,
                     .batch = at.core_batch,
                     .layout = GemmLayout::nn});
    }
    /// FLOPs of `matmuls` causal products of the attention core.
    [[nodiscard]] double flash_flops(double matmuls) const {
        return matmuls * at.scores * static_cast<double>(at.head_dim);  // 2 s^2 d, half of it
    }

    [[nodiscard]] Work core_forward() const {
        if (flash()) {
            return kernel(flash_forward_time(flash_core(), step.device), flash_flops(2), 1);
        }
        Work work = bmm_to_scores() + memory(0);
        work += fused_softmax() ? memory(4 * at.scores) : memory(22 * at.scores, 7);
        if (step.model.dropout) work += memory(5 * at.scores);
        work += bmm_from_scores();
        work += memory(4 * at.n * static_cast<double>(at.query));
        return work;
    }

    [[nodiscard]] Work core_backward() const {
        if (flash()) {
            return kernel(flash_backward_time(flash_core(), step.device), flash_flops(5), 1);
        }
        Work work = memory(4 * at.n * static_cast<double>(at.query));
        work += bmm_to_scores();
        work += bmm_from_scores();
        if (step.model.dropout) work += memory(5 * at.scores);
        work += fused_softmax() ? memory(6 * at.scores) : memory(16 * at.scores, 4);
        work += bmm_from_scores();
        work += bmm_from_scores();
        work += memory(4 * at.n * static_cast<double>(at.qkv), 3);
        return work;
    }

    [[nodiscard]] Work activation_forward() const {
        const double per_element = step.model.mlp == Mlp::swiglu ? 6 : 4;
        return memory(per_element * at.n * static_cast<double>(at.second));
    }
    [[nodiscard]] Work activation_backward() const {
        const double per_element = step.model.mlp == Mlp::swiglu ? 10 : 6;
        return memory(per_element * at.n * static_cast<double>(at.second));
    }
};

/// A list of operations that grows at its end.
struct List {
    std::int32_t layer = -1;
    std::vector<Operation> operations;

    void add(Site site, Pass pass, const Work& work) {
        Operation operation;
        operation.site = site;
        operation.pass = pass;
        operation.layer = layer;
        operation.seconds = work.seconds;
        operation.flops = work.flops;
        operation.host = work.host;
        operation.lead = work.lead;
        operations.push_back(operation);
    }
};

void add_layer_forward(List& list, const Kernels& make, Pass pass) {
    const Shape& at = make.at;
    const TrainingStep& step = make.step;
    const Work norm = make.norm_forward();

    Work qkv = make.linear(at.qkv, at.hidden);
    if (step.model.bias) qkv += make.memory(4 * at.n * static_cast<double>(at.qkv));

    list.add(Site::attention_norm, pass, norm);
    list.add(Site::attention_qkv, pass, qkv);
    list.add(Site::attention_core, pass, make.core_forward());
    list.add(Site::attention_projection, pass, make.linear(at.hidden, at.query));
    list.add(Site::attention_residual, pass, make.residual_forward());
    list.add(Site::mlp_norm, pass, norm);
    list.add(Site::mlp_first, pass, make.linear(at.first, at.hidden));
    list.add(Site::mlp_activation, pass, make.activation_forward());
    list.add(Site::mlp_second, pass, make.linear(at.hidden, at.second));
    list.add(Site::mlp_residual, pass, make.residual_forward());
}

void add_layer_backward(List& list, const Kernels& make) {
    const Shape& at = make.at;
    const bool dropout = make.step.model.dropout;
    const Pass input = Pass::input_gradient;
    const Pass weight = Pass::weight_gradient;

    if (dropout) list.add(Site::mlp_residual, input, make.dropout_backward());
    list.add(Site::mlp_second, input, make.linear_backward(at.hidden, at.second));
    list.add(Site::mlp_second, weight, make.weight_and_bias(at.hidden, at.second));
    list.add(Site::mlp_activation, input, make.activation_backward());
    list.add(Site::mlp_first, input, make.linear_backward(at.first, at.hidden));
    list.add(Site::mlp_first, weight, make.weight_and_bias(at.first, at.hidden));
    list.add(Site::mlp_norm, input, make.norm_and_residual_backward());
    if (dropout) list.add(Site::attention_residual, input, make.dropout_backward());
    list.add(Site::attention_projection, input, make.linear_backward(at.hidden, at.query));
    list.add(Site::attention_projection, weight, make.weight_and_bias(at.hidden, at.query));
    list.add(Site::attention_core, input, make.core_backward());
    list.add(Site::attention_qkv, input, make.linear_backward(at.qkv, at.hidden));
    list.add(Site::attention_qkv, weight, make.weight_and_bias(at.qkv, at.hidden));
    list.add(Site::attention_norm, input, make.norm_and_residual_backward());
}

/// `time` and the FLOPs of `modelled` operations of `pass`, divided by `parts`.
Work measured_part(Duration time, const std::vector<Operation>& modelled, Pass pass,
                   std::size_t parts) {
    double flops = 0;
    for (const Operation& operation : modelled) {
        if (operation.pass == pass) flops += operation.flops;
    }
    const auto count = static_cast<double>(parts);
    return {to_seconds(time) / count, flops / count};
}

/// Measured times in place of the modelled operations, in equal parts at `sites`.
void add_measured_forward(List& list, Duration time, const std::vector<Operation>& modelled,
                          Pass pass, std::span<const Site> sites) {
    const Work part = measured_part(time, modelled, pass, sites.size());
    for (const Site site : sites) list.add(site, pass, part);
}

void add_measured_backward(List& list, const MeasuredTimes& times,
                           const std::vector<Operation>& modelled, std::span<const Site> sites) {
    const Work input =
        measured_part(times.input_gradient, modelled, Pass::input_gradient, sites.size());
    const Work weight =
        measured_part(times.weight_gradient, modelled, Pass::weight_gradient, sites.size());
    for (const Site site : sites) {
        list.add(site, Pass::input_gradient, input);
        list.add(site, Pass::weight_gradient, weight);
    }
}

constexpr std::array layer_matrices{Site::attention_qkv, Site::attention_projection,
                                    Site::mlp_first, Site::mlp_second};
constexpr std::array layer_matrices_backward{Site::mlp_second, Site::mlp_first,
                                             Site::attention_projection, Site::attention_qkv};
constexpr std::array head_sites{Site::head, Site::loss};

void add_embedding_forward(List& list, const Kernels& make) {
    const Shape& at = make.at;
    const Split& split = make.step.split;
    const bool masked = split.vocabulary_parallel && split.tensor > 1;
    list.add(Site::embedding, Pass::forward,
             make.memory(4 * at.n * at.h, masked ? masked_lookup_launches : 1));

    Work rest;
    if (make.step.model.positions == Positions::learned) rest += make.memory(6 * at.n * at.h);
    if (make.step.model.dropout) rest += make.memory(5 * at.n * at.hs);
    if (rest.seconds > 0) list.add(Site::embedding, Pass::forward, rest);
}

void add_embedding_backward(List& list, const Kernels& make) {
    const Shape& at = make.at;
    Work work = make.memory(8 * at.n * at.h);
    if (make.step.model.positions == Positions::learned) work += make.memory(4 * at.n * at.h);
    if (make.step.model.dropout) work += make.dropout_backward();
    list.add(Site::embedding, Pass::weight_gradient, work);
}

void add_head_forward(List& list, const Kernels& make) {
    const Shape& at = make.at;
    const double logits = at.n * static_cast<double>(at.vocab);
    list.add(Site::final_norm, Pass::forward, make.norm_forward());
    list.add(Site::head, Pass::forward, make.linear(at.vocab, at.hidden));
    list.add(Site::loss, Pass::forward,
             make.memory(6 * logits) +
                 make.memory(make.step.framework.loss_forward_bytes * logits, entropy_launches));
}

void add_head_backward(List& list, const Kernels& make) {
    const Shape& at = make.at;
    const double logits = at.n * static_cast<double>(at.vocab);
    list.add(
        Site::loss, Pass::input_gradient,
        make.memory(make.step.framework.loss_backward_bytes * logits, entropy_backward_launches));
    list.add(Site::head, Pass::input_gradient, make.linear_backward(at.vocab, at.hidden));
    list.add(Site::head, Pass::weight_gradient, make.weight(at.vocab, at.hidden));
    list.add(Site::final_norm, Pass::input_gradient, make.norm_backward());
}

}  // namespace

double launch_seconds(const Host& host, Pass pass) {
    const bool forward = pass == Pass::forward || pass == Pass::recompute;
    return to_seconds(forward ? host.forward_launch : host.backward_launch);
}

std::vector<Operation> layer_forward(const TrainingStep& step, std::int32_t layer) {
    const Kernels make(step, Pass::forward);
    List modelled{.layer = layer, .operations = {}};
    add_layer_forward(modelled, make, Pass::forward);
    if (!step.measured.layer) return modelled.operations;

    List list{.layer = layer, .operations = {}};
    add_measured_forward(list, step.measured.layer->forward, modelled.operations, Pass::forward,
                         layer_matrices);
    return list.operations;
}

std::vector<Operation> layer_backward(const TrainingStep& step, std::int32_t layer) {
    const Kernels make(step, Pass::backward);
    List list{.layer = layer, .operations = {}};
    if (step.recompute == Recompute::full) {
        list.operations = layer_forward(step, layer);
        for (Operation& operation : list.operations) operation.pass = Pass::recompute;
    }
    if (step.measured.layer) {
        List modelled{.layer = layer, .operations = {}};
        add_layer_backward(modelled, make);
        add_measured_backward(list, *step.measured.layer, modelled.operations,
                              layer_matrices_backward);
        return list.operations;
    }
    if (step.recompute == Recompute::selective && !make.flash()) {
        list.add(Site::attention_core, Pass::recompute,
                 Kernels(step, Pass::recompute).core_forward());
    }
    add_layer_backward(list, make);
    return list.operations;
}

std::vector<Operation> embedding_forward(const TrainingStep& step) {
    List list;
    if (step.measured.embedding) {
        list.add(Site::embedding, Pass::forward, {to_seconds(step.measured.embedding->forward), 0});
    } else {
        add_embedding_forward(list, Kernels(step, Pass::forward));
    }
    return list.operations;
}

std::vector<Operation> embedding_backward(const TrainingStep& step) {
    List list;
    if (step.measured.embedding) {
        const Duration time =
            step.measured.embedding->input_gradient + step.measured.embedding->weight_gradient;
        list.add(Site::embedding, Pass::weight_gradient, {to_seconds(time), 0});
    } else {
        add_embedding_backward(list, Kernels(step, Pass::backward));
    }
    return list.operations;
}

std::vector<Operation> head_forward(const TrainingStep& step) {
    List modelled;
    add_head_forward(modelled, Kernels(step, Pass::forward));
    if (!step.measured.head) return modelled.operations;

    List list;
    add_measured_forward(list, step.measured.head->forward, modelled.operations, Pass::forward,
                         head_sites);
    return list.operations;
}

std::vector<Operation> head_backward(const TrainingStep& step) {
    List modelled;
    add_head_backward(modelled, Kernels(step, Pass::backward));
    if (!step.measured.head) return modelled.operations;

    const MeasuredTimes& times = *step.measured.head;
    const Work input = measured_part(times.input_gradient, modelled.operations,
                                     Pass::input_gradient, head_sites.size());
    const Work weight =
        measured_part(times.weight_gradient, modelled.operations, Pass::weight_gradient, 1);
    List list;
    list.add(Site::loss, Pass::input_gradient, input);
    list.add(Site::head, Pass::input_gradient, input);
    list.add(Site::head, Pass::weight_gradient, weight);
    return list.operations;
}

std::vector<Operation> optimizer_update(const TrainingStep& step, double owned_parameters) {
    List list;
    const double seconds =
        step.measured.optimizer
            ? to_seconds(*step.measured.optimizer)
            : memory_time(step.framework.optimizer_bytes * owned_parameters, step.device);
    list.add(Site::optimizer, Pass::update, {seconds, 0});
    return list.operations;
}

}  // namespace fourfold
