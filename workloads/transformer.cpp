#include "workloads/transformer.hpp"

// Parameters and model FLOPs of a decoder-only transformer.
//
//   attention  q, k, v: h x (a + 2 kv) d      output: a d x h
//   MLP        gelu:    h x f, f x h          swiglu: gate and up h x f, down f x h: three
//   matrices,
//              so that f = 8h/3 costs as much as gelu's 4h; counting two is a common mistake
//              (bigscience/Megatron-DeepSpeed #283)
//   norms      two a layer and a final one; a layernorm has a gain and a shift (2h), an rmsnorm a
//              gain (h)
//   biases     one per output of each matrix
//
// With f = 4h and kv = a a GPT layer has 12 h^2 + 13 h (Narayanan et al. 2021, arXiv 2104.04473,
// eq. 2); the Llama shapes give the published counts to the last parameter (transformer_test).
//
// FLOPs: a multiply-add is 2, a backward pass twice the forward; lookup, norms and activations are
// bandwidth, not FLOPs (arXiv 2104.04473, appendix; Korthikanti et al. 2022, appendix A).

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace fourfold {
namespace {

constexpr std::int64_t size_limit = std::int64_t{1} << 31;
constexpr double parameters_limit = 9007199254740992;  // 2^53: counted exactly, also as a double

std::int64_t norm_parameters(const Transformer& model) {
    return (model.norm == Norm::layernorm ? 2 : 1) * model.hidden;
}

std::int64_t matrices_of_first(const Transformer& model) {
    return model.mlp == Mlp::swiglu ? 2 : 1;
}

std::int64_t attention_matrices(const Transformer& model) {
    const std::int64_t inner = (2 * model.heads + 2 * model.kv_heads) * head_dim(model);
    return model.hidden * inner;
}

std::int64_t mlp_matrices(const Transformer& model) {
    return (matrices_of_first(model) + 1) * model.hidden * model.ffn;
}

std::int64_t biases(const Transformer& model) {
    return (model.heads + 2 * model.kv_heads) * head_dim(model) + model.hidden +
           matrices_of_first(model) * model.ffn + model.hidden;
}

/// Larger than any of the counts below; in floating point, because it must not overflow.
double parameters_bound(const Transformer& model) {
    const auto real = [](std::int64_t n) { return static_cast<double>(n); };
    const double width = 4 * real(model.heads) * real(head_dim(model)) + 3 * real(model.ffn) + 16;
    return real(model.layers) * (real(model.hidden) + 1) * width +
           (2 * real(model.vocab) + real(model.sequence) + 2) * real(model.hidden);
}

}  // namespace

bool is_flash(const Transformer& model) { return model.attention != Attention::unfused; }

std::int64_t head_dim(const Transformer& model) {
    return model.head_dim > 0 ? model.head_dim : model.hidden / model.heads;
}

Result<void> check(const Transformer& model) {
    const std::array<std::pair<std::string_view, std::int64_t>, 7> sizes{
        {{"layers", model.layers},
         {"hidden", model.hidden},
         {"heads", model.heads},
         {"kv_heads", model.kv_heads},
         {"ffn", model.ffn},
         {"vocab", model.vocab},
         {"sequence", model.sequence}}};
    for (const auto& [key, size] : sizes) {
        if (size <= 0)
            return problem(std::string(key), fmt::format("must be positive, not {}", size));
        if (size >= size_limit) {
            return problem(std::string(key),
                           fmt::format("{} is too large; at most {}", size, size_limit - 1));
        }
    }
    if (model.head_dim < 0 || model.head_dim >= size_limit) {
        return problem("head_dim", fmt::format("must be positive and at most {}, not {}",
                                               size_limit - 1, model.head_dim));
    }
    if (model.head_dim == 0 && model.hidden % model.heads != 0) {
        return problem("heads",
                       fmt::format("hidden ({}) is not a multiple of heads ({}); change one, "
                                   "or give head_dim",
                                   model.hidden, model.heads));
    }
    if (model.heads % model.kv_heads != 0) {
        return problem("kv_heads",
                       fmt::format("heads ({}) is not a multiple of kv_heads ({}); each "
                                   "key and value head serves equally many query heads",
                                   model.heads, model.kv_heads));
    }
    if (parameters_bound(model) > parameters_limit) {
        return problem("hidden", fmt::format("the model has about {:.1e} parameters; at most 2^53 "
                                             "(9.0e+15) are counted, make it smaller",
                                             parameters_bound(model)));
    }
    return {};
}

std::int64_t layer_parameters(const Transformer& model) {
    return attention_matrices(model) + mlp_matrices(model) + 2 * norm_parameters(model) +
           (model.bias ? biases(model) : 0);
}

std::int64_t embedding_parameters(const Transformer& model) {
    const std::int64_t positions = model.positions == Positions::learned ? model.sequence : 0;
    return (model.vocab + positions) * model.hidden;
}

std::int64_t head_parameters(const Transformer& model) {
    return model.tied_embeddings ? 0 : model.vocab * model.hidden;
}

std::int64_t final_norm_parameters(const Transformer& model) { return norm_parameters(model); }

std::int64_t parameters(const Transformer& model) {
    return model.layers * layer_parameters(model) + embedding_parameters(model) +
           head_parameters(model) + final_norm_parameters(model);
}

double model_flops_per_token(const Transformer& model, FlopsConvention convention) {
    const double forward =
        static_cast<double>(model.layers) *
            (layer_forward_flops(model) + attention_forward_flops(model, convention)) +
        head_forward_flops(model);
    return 3 * forward;
}

double layer_forward_flops(const Transformer& model) {
    return 2 * static_cast<double>(attention_matrices(model) + mlp_matrices(model));
}

double attention_forward_flops(const Transformer& model, FlopsConvention convention) {
    // Q K^T and (scores) V, 2 a d s each for a token that sees all s others.
    const double full = 4 * static_cast<double>(model.heads * head_dim(model)) *
                        static_cast<double>(model.sequence);
    return convention == FlopsConvention::full ? full : full / 2;
}

double head_forward_flops(const Transformer& model) {
    return 2 * static_cast<double>(model.vocab) * static_cast<double>(model.hidden);
}

}  // namespace fourfold
