"""Stand-ins for the repositories that Bazel 4.2.3 would otherwise download.

Debian's bazel-bootstrap has no rules_cc/rules_java/... inside it, and the embedded
@bazel_tools packages load() from them.  Every symbol they load is a native rule, so a
repository that hands those native rules back is enough.
"""

def _stub_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    for path, text in ctx.attr.files.items():
        ctx.file(path, text, executable = False)

stub_repository = repository_rule(
    implementation = _stub_impl,
    attrs = {"files": attr.string_dict()},
)

def _aliases(names):
    return "".join(["%s = native.%s\n" % (n, n) for n in names])

def offline_repositories():
    stub_repository(
        name = "rules_cc",
        files = {
            "BUILD": "",
            "cc/BUILD": "",
            "cc/defs.bzl": _aliases([
                "cc_binary",
                "cc_import",
                "cc_library",
                "cc_proto_library",
                "cc_test",
                "cc_toolchain",
                "cc_toolchain_suite",
                "objc_library",
            ]),
        },
    )
    stub_repository(
        name = "rules_java",
        files = {
            "BUILD": "",
            "java/BUILD": "",
            "java/defs.bzl": _aliases([
                "java_binary",
                "java_import",
                "java_library",
                "java_proto_library",
                "java_runtime",
                "java_toolchain",
            ]),
        },
    )
    stub_repository(
        name = "remote_coverage_tools",
        files = {
            "BUILD": """
package(default_visibility = ["//visibility:public"])
filegroup(name = "coverage_report_generator", srcs = ["nothing.sh"])
filegroup(name = "lcov_merger", srcs = ["nothing.sh"])
""",
            "nothing.sh": "#!/bin/sh\nexit 0\n",
        },
    )
