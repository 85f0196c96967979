"""fuzz_target: a program that gives random bytes to a parser, and a test with its corpus."""

load("//tools/bazel:rules.bzl", "unit_test")

def fuzz_target(name, deps, seeds = [], mutations = 2000, **kwargs):
    """Makes a fuzz target of `NAME.cc`, which defines fuzz::feed(), and the test `NAME_test`.

    The corpus is the files `corpus/NAME/*.bin` and `seeds`. The test runs them with any compiler.
    The program itself needs `--config=fuzz`: see tests/fuzz/run.sh.

    Args:
      name: of the program, and of its .cc file
      deps: what the .cc file includes, apart from KJ and fuzz.h
      seeds: labels of more files, such as the inputs of other tests
      mutations: how many mutations of the corpus the test makes
      **kwargs: attributes of the test
    """
    native.filegroup(
        name = name + "_corpus",
        srcs = native.glob(["corpus/%s/*.bin" % name], allow_empty = True) + seeds,
    )
    native.cc_binary(
        name = name,
        testonly = 1,
        srcs = [name + ".cc"],
        data = [":%s_corpus" % name],
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = deps + [":fuzz", ":libfuzzer"],
    )
    unit_test(
        name = name + "_test",
        srcs = [name + ".cc"],
        data = [":%s_corpus" % name],
        env = {
            "ASAN_OPTIONS": "max_allocation_size_mb=100",
            "CORPUS": "$(rootpaths :%s_corpus)" % name,
            "MUTATIONS": str(mutations),
        },
        deps = deps + [":corpus_cases", ":fuzz"],
        **kwargs
    )
