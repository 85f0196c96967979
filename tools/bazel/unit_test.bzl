"""unit_test: one doctest program, `x_test` from `x_test.cc`, beside the module it tests."""

def unit_test(name, deps = [], srcs = None, size = "small", **kwargs):
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs or [name + ".cc"],
        deps = deps + ["//tests:doctest_main"],
        **kwargs
    )
