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
        "runner/export",
        "runner/inference",
        "runner/roles",
        "runner/weights",
        "runner/checkpoints",
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
    above_here = rooms[:rooms.index(here)] + [room + "/testing" for room in rooms]
    return (["//%s:__pkg__" % room for room in above_here] +
            ["//%s:__subpackages__" % other for other in roof + ["tests", "tools"]])

def _with(deps, others):
    return deps + [other for other in others if other not in deps]

def module(name, modules = None, srcs = None, hdrs = None, deps = [], tests = [], **kwargs):
    """A library of `x.h` and `x.cc` for each module `x` in it, and a test for each `x_test.cc`.

    Args:
      name: of the library
      modules: the names of its files. Absent: `name`, unless `srcs` or `hdrs` are given.
      srcs: more sources
      hdrs: more headers
      deps: what its files include, apart from KJ and Cap'n Proto
      tests: the names of more tests, with the same deps and attributes as those of the modules
      **kwargs: `test_deps` and other attributes that begin with `test_` belong to the tests. All
        others belong to the library. The tests also depend on the library and on its deps.
    """
    test = {key[len("test_"):]: kwargs.pop(key) for key in kwargs.keys() if key.startswith("test_")}
    inferred = modules or ([] if srcs or hdrs else [name])
    for each in inferred:
        if not _existing([each], ".h") + _existing([each], ".cc"):
            fail("%s: there is neither %s.h nor %s.cc" % (name, each, each))
    native.cc_library(
        name = name,
        srcs = (srcs or []) + _existing(inferred, ".cc"),
        hdrs = (hdrs or []) + _existing(inferred, ".h"),
        deps = _with(deps, ["@capnp"]),
        **kwargs
    )
    tested = [file[:-len(".cc")] for file in _existing(modules or [name], "_test.cc")] + tests
    test_deps = [":" + name] + _with(deps, test.pop("deps", []))
    for each in tested:
        unit_test(name = each, deps = test_deps, **test)
    if test and not tested:
        fail("%s has attributes of a test, but no test" % name)

def _existing(stems, suffix):
    return native.glob([stem + suffix for stem in stems], allow_empty = True)

def unit_test(name, deps = [], srcs = None, size = "small", **kwargs):
    """One doctest program, `x_test` of `x_test.cc`."""
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs or [name + ".cc"],
        deps = _with(deps, ["//tests:doctest_main", "@capnp"]),
        **kwargs
    )

def unit_tests(name, tests, **kwargs):
    """Several programs of unit_test() that have the same attributes.

    Args:
      name: of the suite of them all
      tests: their names
      **kwargs: the attributes
    """
    for each in tests:
        unit_test(name = each, **kwargs)
    native.test_suite(name = name, tests = [":" + each for each in tests])
