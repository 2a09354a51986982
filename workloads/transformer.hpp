#pragma once

// A transformer's sizes, its parameters and its model FLOPs.

#include <cstdint>
#include <string>

#include "topology/result.hpp"

namespace fourfold {

enum class Mlp : std::uint8_t { gelu, swiglu };
enum class Norm : std::uint8_t { layernorm, rmsnorm };
enum class Positions : std::uint8_t { learned, rotary };
enum class Attention : std::uint8_t {
    unfused,  // scores in memory: bmm, fused scale-mask-softmax, dropout, bmm (Megatron 2021, 2022)
    flash,    // one fused kernel, causal: FlashAttention-2, cuDNN
    flash_1,  // the first FlashAttention, also in Triton
};

struct Transformer {
    std::string name;
    std::int64_t layers = 0;
    std::int64_t hidden = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;  // = heads without grouped-query attention
    std::int64_t head_dim = 0;  // 0: hidden / heads
    std::int64_t ffn = 0;       // inner size of the MLP
    std::int64_t vocab = 0;
    std::int64_t sequence = 0;
    Mlp mlp = Mlp::gelu;
    Norm norm = Norm::layernorm;
    Positions positions = Positions::learned;
    Attention attention = Attention::unfused;
    bool tied_embeddings = true;
    bool bias = true;
    bool dropout = true;
};

/// Sizes positive and below 2^31, hidden divisible by heads (where head_dim is not given), heads by
/// kv_heads. A problem's `where` is the key ("heads").
Result<void> check(const Transformer& model);

/// Whether the attention core is one fused kernel.
bool is_flash(const Transformer& model);

/// hidden / heads unless given.
std::int64_t head_dim(const Transformer& model);

/// Formulas: reference of each in the .cpp. GPT: 12h^2 + 13h per layer; GQA, SwiGLU, RMSNorm as
/// Llama.
std::int64_t layer_parameters(const Transformer& model);
std::int64_t embedding_parameters(const Transformer& model);  // token (and learned position) table
std::int64_t head_parameters(const Transformer& model);       // 0 when tied; the final norm apart
std::int64_t final_norm_parameters(const Transformer& model);
std::int64_t parameters(const Transformer& model);

enum class FlopsConvention : std::uint8_t { full, causal };

/// Model FLOPs of one token, forward and backward (3 x forward); `full` counts the whole attention
/// matrix as Narayanan et al. 2021 (eq. 3) do, `causal` half of it.
double model_flops_per_token(const Transformer& model, FlopsConvention convention);

/// Forward FLOPs of one token: of one layer's matrices, of its attention core, of the head.
double layer_forward_flops(const Transformer& model);
double attention_forward_flops(const Transformer& model, FlopsConvention convention);
double head_forward_flops(const Transformer& model);

}  // namespace fourfold
