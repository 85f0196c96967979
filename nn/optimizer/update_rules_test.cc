#include "nn/optimizer/update_rules.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

namespace nn {
namespace {

struct Read {
  configs::Diagnostics diagnostics;
  kj::Own<configs::Document> document;
  kj::Maybe<UpdateRules> rules;

  explicit Read(kj::StringPtr text) {
    document = configs::parse("x.toml", text, diagnostics);
    configs::Reading reading{diagnostics, {}};
    rules = configs::readDocument(*document, reading,
        [](configs::Reader& reader) { return UpdateRules::read(reader, CONVENTIONS[0]); });
  }
  KeyRule of(kj::StringPtr name, float learningRateFactor = 1) {
    return KJ_ASSERT_NONNULL(rules).of(key(name, Key::WEIGHT, learningRateFactor));
  }
  // Returns the errors of check() for a network with these keys.
  kj::String check(bool fixedGamma = false) {
    Key keys[] = {key("conv1_weight", Key::WEIGHT), key("conv1_bias", Key::BIAS),
        key("bn1_gamma", Key::GAMMA, fixedGamma ? 0 : 1), key("bn1_beta", Key::BETA),
        key("fc1_weight", Key::WEIGHT)};
    KJ_ASSERT_NONNULL(rules).check(keys, diagnostics);
    return diagnostics.format("x.toml");
  }

private:
  static Key key(kj::StringPtr name, Key::Role role, float learningRateFactor = 1) {
    return {.name = kj::str(name),
        .role = role,
        .node = 1,
        .offset = 0,
        .size = 6,
        .rows = 2,
        .cols = 3,
        .learningRateFactor = learningRateFactor};
  }
};

bool contains(kj::StringPtr text, kj::StringPtr part) {
  return strstr(text.cStr(), part.cStr()) != nullptr;
}

TEST_CASE("update_rules: a star matches any letters or none") {
  CHECK(matches("conv1_weight", "conv1_weight"));
  CHECK(!matches("conv1_weight", "conv1_weights"));
  CHECK(!matches("conv1_weights", "conv1_weight"));
  CHECK(matches("*", ""));
  CHECK(matches("*_beta", "bn1_beta"));
  CHECK(matches("*_beta", "_beta_beta"));
  CHECK(!matches("*_beta", "bn1_beta2"));
  CHECK(matches("conv*_w*t", "conv_weight"));
  CHECK(matches("**a*b**", "xaxxb"));
  CHECK(!matches("*a*b*c", "abab"));
  CHECK(!matches("", "a"));
  // Many stars do not make the match exponentially slow.
  CHECK(!matches("*a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

TEST_CASE(
    "update_rules: the first group that holds a key counts, and its factors multiply the key's") {
  Read read(
      "[[groups]]\nkeys = [\"bn*_beta\"]\nlearning_rate_factor = 64\n"
      "decay_factor = 0.015625\n[[groups]]\nkeys = [\"*\"]\nepochs = 3\n");
  CHECK(read.diagnostics.count() == 0);
  auto beta = read.of("bn1_beta", 0.5);
  CHECK(beta.learningRateFactor == 32);
  CHECK(beta.decayFactor == 0.015625);
  CHECK(beta.epochs == nullptr);
  CHECK(!beta.isFrozen());
  auto other = read.of("fc1_weight", 0);
  CHECK(other.isFrozen());
  CHECK(KJ_ASSERT_NONNULL(other.epochs) == 3);
  CHECK(other.optimizer == beta.optimizer);
}

TEST_CASE("update_rules: a key without a group has the default rule") {
  Read read("");
  auto rule = read.of("fc1_weight", 2);
  CHECK(rule.optimizer->name() == "sgd");
  CHECK(rule.learningRateFactor == 2);
  CHECK(rule.learningRate(5, {.updatesPerEpoch = 10, .updates = 100}) == 0.02);
  CHECK(read.check() == "");
}

TEST_CASE("update_rules: the error about a pattern that matches no key names a similar key") {
  Read read("[[groups]]\nkeys = [\"conv1_wieght\", \"*_beta\", \"whiten*\"]\n");
  CHECK(read.check() ==
        "x.toml:2:8: error: no key of the network is called `conv1_wieght`\n"
        "  2 | keys = [\"conv1_wieght\", \"*_beta\", \"whiten*\"]\n"
        "    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  help: did you mean `conv1_weight`?\n"
        "x.toml:2:8: error: no key of the network is called `whiten*`\n"
        "  2 | keys = [\"conv1_wieght\", \"*_beta\", \"whiten*\"]\n"
        "    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  help: its keys: conv1_weight, conv1_bias, bn1_gamma, bn1_beta, … (5 in all)\n"
        "2 errors in x.toml; nothing was started.\n");
}

TEST_CASE("update_rules: a group needs keys") {
  CHECK(Read("[[groups]]\nepochs = 2\n").diagnostics.count() == 1);
}

TEST_CASE("update_rules: muon takes no biases, unless they are frozen or have another rule") {
  auto muon = "optimizer = { kind = \"muon\" }\n[[groups]]\nkeys = [\"*_bias\", \"*_gamma\"]\n"_kj;
  CHECK(Read(kj::str(muon, "learning_rate_factor = 0\n")).check() ==
        "x.toml:1:22: error: `muon` updates only weights, but it would also get `bn1_beta`\n"
        "  1 | optimizer = { kind = \"muon\" }\n"
        "    |                      ^^^^^^\n"
        "  help: add a group before all others: [[train.groups]] with keys = [\"*_beta\"] and "
        "optimizer = { "
        "kind = \"sgd\" }\n"
        "1 error in x.toml; nothing was started.\n");
  auto sgd = "optimizer = { kind = \"sgd\" }\n"_kj;
  CHECK(Read(kj::str(muon, sgd, "[[groups]]\nkeys = [\"*_beta\"]\n", sgd)).check() == "");
  // The group's own optimizer.
  CHECK(Read("[[groups]]\nkeys = [\"*\"]\noptimizer = { kind = \"muon\" }\n")
            .check()
            .startsWith("x.toml:3:22: error: `muon` updates only weights, but it would also get "
                        "`conv1_bias` (3 such keys)\n"));
}

TEST_CASE(
    "update_rules: the help about muon names all roles, and advises to narrow a group's keys") {
  CHECK(contains(Read("optimizer = { kind = \"muon\" }\n").check(),
      "keys = [\"*_bias\", \"*_gamma\", \"*_beta\"]"));
  CHECK(contains(Read("[[groups]]\nkeys = [\"*\"]\noptimizer = { kind = \"muon\" }\n").check(),
      "help: narrow its keys to weights"));
}

TEST_CASE("update_rules: a group is an error if all of its keys belong to earlier groups") {
  auto all = "[[groups]]\nkeys = [\"*_weight\"]\n[[groups]]\nkeys = [\"*\"]\n"_kj;
  CHECK(Read(all).check() == "");
  auto bias = kj::str(all, "[[groups]]\nkeys = [\"conv1_*\"]\n");
  CHECK(Read(bias).check() ==
        "x.toml:6:8: error: all keys of this group belong to earlier groups (lines 2, 4)\n"
        "  6 | keys = [\"conv1_*\"]\n"
        "    |        ^^^^^^^^^^^\n"
        "  help: a key belongs to the first group that names it: move this group up, or leave it "
        "out\n"
        "1 error in x.toml; nothing was started.\n");
}

TEST_CASE("update_rules: a group of fixed gammas is an error") {
  auto gammas = "[[groups]]\nkeys = [\"*_gamma\"]\n"_kj;
  CHECK(Read(gammas).check() == "");
  CHECK(Read(gammas).check(true).startsWith(
      "x.toml:2:8: error: all keys of this group are gammas that their layers keep fixed at 1\n"));
  // Fixed gammas beside other keys do no harm.
  CHECK(Read("[[groups]]\nkeys = [\"bn1_*\"]\n").check(true) == "");
}

TEST_CASE("update_rules: a string in place of a list of keys is one error") {
  CHECK(Read("[[groups]]\nkeys = \"*_bias\"\n").diagnostics.count() == 1);
}

}  // namespace
}  // namespace nn
