#include "workloads/transformer.hpp"

#include <doctest/doctest.h>

#include <string>

namespace fourfold {
namespace {

Transformer llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                  std::int64_t kv_heads, std::int64_t ffn, std::int64_t vocab,
                  std::int64_t sequence) {
    Transformer model;
    model.layers = layers;
    model.hidden = hidden;
    model.heads = heads;
    model.kv_heads = kv_heads;
    model.head_dim = hidden / heads;
    model.ffn = ffn;
    model.vocab = vocab;
    model.sequence = sequence;
    model.mlp = Mlp::swiglu;
    model.norm = Norm::rmsnorm;
    model.positions = Positions::rotary;
    model.attention = Attention::flash;
    model.tied_embeddings = false;
    model.bias = false;
    model.dropout = false;
    return model;
}

Transformer gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
    Transformer model;
    model.layers = layers;
    model.hidden = hidden;
    model.heads = heads;
    model.kv_heads = heads;
    model.head_dim = hidden / heads;
    model.ffn = 4 * hidden;
    model.vocab = 51200;
    model.sequence = 2048;
    return model;
}

Transformer llama3_8b(std::int64_t sequence) {
    return llama(32, 4096, 32, 8, 14336, 128256, sequence);
}
Transformer llama3_70b(std::int64_t sequence) {
    return llama(80, 8192, 64, 8, 28672, 128256, sequence);
}

/// "where: what" of the problem.
std::string refusal(const Transformer& model) {
    const auto result = check(model);
    return result ? "none" : result.error().where + ": " + result.error().what;
}

TEST_CASE("Llama parameters are the published counts") {
    CHECK(parameters(llama(32, 4096, 32, 32, 11008, 32000, 4096)) == 6738415616);
    CHECK(parameters(llama(40, 5120, 40, 40, 13824, 32000, 4096)) == 13015864320);
    CHECK(parameters(llama(80, 8192, 64, 8, 28672, 32000, 4096)) == 68976648192);
    CHECK(parameters(llama3_8b(8192)) == 8030261248);
    CHECK(parameters(llama3_70b(8192)) == 70553706496);
    CHECK(parameters(llama(126, 16384, 128, 8, 53248, 128256, 8192)) == 405853388800);
}

TEST_CASE("a GPT layer has 12 h^2 + 13 h parameters") {
    const std::int64_t h = 6144;
    const Transformer model = gpt(48, h, 64);
    CHECK(layer_parameters(model) == 12 * h * h + 13 * h);
    CHECK(embedding_parameters(model) == (51200 + 2048) * h);
    CHECK(head_parameters(model) == 0);
    CHECK(final_norm_parameters(model) == 2 * h);
    CHECK(parameters(model) == 48 * (12 * h * h + 13 * h) + (51200 + 2048) * h + 2 * h);
    // To five digits, for V = 51200 and s = 2048.
    CHECK(static_cast<double>(parameters(model)) == doctest::Approx(2.2074e10).epsilon(5e-5));
    CHECK(static_cast<double>(parameters(gpt(96, 12288, 96))) ==
          doctest::Approx(1.7462e11).epsilon(5e-5));
    CHECK(static_cast<double>(parameters(gpt(105, 20480, 128))) ==
          doctest::Approx(5.2960e11).epsilon(5e-5));
    CHECK(static_cast<double>(parameters(gpt(128, 25600, 160))) ==
          doctest::Approx(1.0080e12).epsilon(5e-5));
}

TEST_CASE("tied embeddings are counted once and an untied head apart") {
    Transformer model = gpt(48, 6144, 64);
    const std::int64_t tied = parameters(model);
    model.tied_embeddings = false;
    CHECK(parameters(model) - tied == 51200 * 6144);
}

TEST_CASE("model FLOPs of a token are exact in both conventions") {
    const auto full = FlopsConvention::full;
    const auto causal = FlopsConvention::causal;
    CHECK(model_flops_per_token(llama3_8b(4096), full) == 51470401536.0);
    CHECK(model_flops_per_token(llama3_8b(4096), causal) == 48249176064.0);
    CHECK(model_flops_per_token(llama3_8b(8192), full) == 57912852480.0);
    CHECK(model_flops_per_token(llama3_8b(8192), causal) == 51470401536.0);
    CHECK(model_flops_per_token(llama3_70b(4096), full) == 449222541312.0);
    CHECK(model_flops_per_token(llama3_70b(4096), causal) == 433116413952.0);
    CHECK(model_flops_per_token(llama3_70b(8192), full) == 481434796032.0);
    CHECK(model_flops_per_token(llama3_70b(8192), causal) == 449222541312.0);
}

TEST_CASE("GPT FLOPs are 72 L h^2 (1 + s / 6h + V / 12Lh) a token") {
    // Korthikanti et al. 2022, appendix A, eq. 7 without recomputation.
    const double layers = 96, h = 12288, s = 2048, vocab = 51200;
    const double expected = 72 * layers * h * h * (1 + s / (6 * h) + vocab / (12 * layers * h));
    CHECK(model_flops_per_token(gpt(96, 12288, 96), FlopsConvention::full) ==
          doctest::Approx(expected).epsilon(1e-12));
}

TEST_CASE(
    "a gated MLP has three matrices: with f = 8h/3 a layer counts 24 h^2, with f = 4h 32 h^2") {
    // 2 FLOPs * (4 h^2 of attention + 3 h f); bigscience #283 counted 2 h f.
    const double h = 6144;
    CHECK(layer_forward_flops(llama(1, 6144, 64, 64, 16384, 51200, 2048)) == 24 * h * h);
    CHECK(layer_forward_flops(llama(1, 6144, 64, 64, 24576, 51200, 2048)) == 32 * h * h);
    CHECK(layer_forward_flops(gpt(1, 6144, 64)) == 24 * h * h);
}

TEST_CASE("a given head size counts, and without one it is hidden / heads") {
    Transformer model = gpt(48, 6144, 64);
    const std::int64_t derived = parameters(model);
    model.head_dim = 0;
    CHECK(parameters(model) == derived);
    model.head_dim = 128;
    CHECK(layer_parameters(model) - 8 * 6144 * 6144 ==  // MLP
          4 * 6144 * 64 * 128 + 3 * 64 * 128 + 6144 + 5 * 6144 + 4 * 6144);
}

TEST_CASE("sizes that cannot be are refused by key") {
    CHECK(refusal(gpt(48, 6144, 64)) == "none");
    CHECK(refusal(llama3_70b(8192)) == "none");

    Transformer model = gpt(0, 6144, 64);
    CHECK(refusal(model) == "layers: must be positive, not 0");
    model = gpt(48, 6144, 64);
    model.vocab = std::int64_t{1} << 31;
    CHECK(refusal(model) == "vocab: 2147483648 is too large; at most 2147483647");
    model = gpt(48, 6144, 64);
    model.heads = model.kv_heads = 60;
    model.head_dim = 0;
    CHECK(refusal(model) ==
          "heads: hidden (6144) is not a multiple of heads (60); change one, or give head_dim");
    model.head_dim = 96;
    CHECK(refusal(model) == "none");
    model.head_dim = -1;
    CHECK(refusal(model) == "head_dim: must be positive and at most 2147483647, not -1");
    model = gpt(48, 6144, 64);
    model.kv_heads = 7;
    CHECK(refusal(model) ==
          "kv_heads: heads (64) is not a multiple of kv_heads (7); each key and value head serves "
          "equally many query heads");
    model = gpt(2000000000, 500000000, 1);
    CHECK(
        refusal(model) ==
        "hidden: the model has about 8.0e+27 parameters; at most 2^53 (9.0e+15) are counted, make "
        "it smaller");
}

}  // namespace
}  // namespace fourfold
