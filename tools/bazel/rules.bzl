"""The rules of this project's BUILD files, all from one place.

A pillar's folders are rooms. A file includes only what its own room and the rooms below it hold:
above() makes Bazel enforce this.
"""

load("//tools/bazel:capnp.bzl", _capnp_cc_library = "capnp_cc_library")
load("//tools/bazel:portable.bzl", _PORTABLE = "PORTABLE")

PORTABLE = _PORTABLE
capnp_cc_library = _capnp_cc_library
cc_binary = native.cc_binary
cc_library = native.cc_library

# From the top to the bottom. A pillar is visible to the rooms of `runner`, to tests and to tools.
_ROOMS = {
    "runner": [
        "runner",
        "runner/commands",
        "runner/sweep",
        "runner/report",
        "runner/tables",
        "runner/launch",
        "runner/roles",
        "runner/experiment",
        "runner/logs",
        "runner/system",
        "runner/text",
    ],
    "rpc": [
        "rpc/modes",
        "rpc/store",
        "rpc/shard",
        "rpc/wire",
        "rpc/shared_memory",
        "rpc",
        "rpc/codec",
    ],
    "nn": [
        "nn/cuda",
        "nn/cpu",
        "nn/reference",
        "nn",
        "nn/optimizer",
        "nn/network",
        "nn/loops",
    ],
    "io": [
        "io/batches",
        "io/datasets",
        "io/images",
        "io/records",
        "io",
    ],
}

def above():
    """The packages that may use this one: those above it in its pillar, the roof, tests, tools."""
    here = native.package_name()
    pillar = here.split("/")[0]
    rooms = _ROOMS[pillar]
    if here.endswith("/testing"):  # its targets are testonly
        return ["//%s:__subpackages__" % other for other in [pillar, "runner", "tests", "tools"]]
    roof = [] if pillar == "runner" else ["runner"]
    above_here = rooms[:rooms.index(here)] + [pillar + "/testing"]
    return (["//%s:__pkg__" % room for room in above_here] +
            ["//%s:__subpackages__" % other for other in roof + ["tests", "tools"]])

def _with(deps, others):
    return deps + [other for other in others if other not in deps]

def module(name, srcs = None, hdrs = None, deps = [], **kwargs):
    """A library `name` of `name.h` and `name.cc`, and its test, if there is a `name_test.cc`.

    Args:
      name: of the module, and of its files where no others are given.
      srcs: its sources. Absent: `name.cc`, if there is such a file.
      hdrs: its headers. Absent: `name.h`.
      deps: what its files include, apart from KJ and Cap'n Proto.
      **kwargs: `test_deps` and other attributes that begin with `test_` belong to the test, whose
        deps are also the module and the module's own. All others belong to the library.
    """
    test = {key[len("test_"):]: kwargs.pop(key) for key in kwargs.keys() if key.startswith("test_")}
    if srcs == None and hdrs == None:
        srcs = native.glob([name + ".cc"], allow_empty = True)
        hdrs = [name + ".h"]
    native.cc_library(
        name = name,
        srcs = srcs or [],
        hdrs = hdrs or [],
        deps = _with(deps, ["@capnp"]),
        **kwargs
    )
    if native.glob([name + "_test.cc"], allow_empty = True):
        unit_test(
            name = name + "_test",
            deps = [":" + name] + _with(deps, test.pop("deps", [])),
            **test
        )
    elif test:
        fail("%s has attributes of a test, but there is no %s_test.cc" % (name, name))

def unit_test(name, deps = [], srcs = None, size = "small", **kwargs):
    """One doctest program, `x_test` of `x_test.cc`."""
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs or [name + ".cc"],
        deps = _with(deps, ["//tests:doctest_main", "@capnp"]),
        **kwargs
    )
