"""system_library: one Debian -dev package as an external repository, @name//:name.

Headers and archives are symlinked one by one (never all of /usr/include: putting that on the
-isystem list breaks libstdc++'s #include_next), so Bazel tracks them, and a package that is not
installed fails with its name rather than with a missing header.
"""

_LIBDIR = "/usr/lib/x86_64-linux-gnu"

def _need(ctx, path):
    p = ctx.path(path)
    if not p.exists:
        fail("%s: %s is missing; apt-get install %s" % (ctx.name, path, ctx.attr.debian_package))
    return p

def _base(path):
    return path.split("/")[-1]

def _impl(ctx):
    for d in ctx.attr.include_dirs + ctx.attr.include_files:
        ctx.symlink(_need(ctx, d), "include/" + _base(d))
    for pattern in ctx.attr.include_globs:
        got = ctx.execute(["/bin/sh", "-c", "ls -1 " + pattern])
        if got.return_code:
            fail("%s: nothing matches %s; apt-get install %s" %
                 (ctx.name, pattern, ctx.attr.debian_package))
        for f in got.stdout.split("\n"):
            if f:
                ctx.symlink(f, "include/" + _base(f))
    build = ["package(default_visibility = ['//visibility:public'])"]
    below = None

    # One cc_library per archive, chained, so that they are linked in the listed order.
    for i, lib in enumerate(reversed(ctx.attr.static_libs + ctx.attr.shared_libs)):
        ctx.symlink(_need(ctx, _LIBDIR + "/" + lib), "lib/" + _base(lib))
        build.append("cc_library(name = %r, srcs = [%r], linkstatic = 1, deps = %r)" % (
            "lib%d" % i,
            "lib/" + _base(lib),
            [":" + below] if below else [],
        ))
        below = "lib%d" % i
    build.append("""
cc_library(
    name = %r,
    hdrs = glob(["include/**"], allow_empty = True),
    includes = ["include"],
    linkopts = %r,
    deps = %r,
)""" % (ctx.name, ctx.attr.linkopts, [":" + below] if below else []))
    ctx.file("BUILD", "\n".join(build) + "\n", executable = False)

system_library = repository_rule(
    implementation = _impl,
    attrs = {
        "include_dirs": attr.string_list(),
        "include_files": attr.string_list(),
        "include_globs": attr.string_list(),
        "static_libs": attr.string_list(),
        "shared_libs": attr.string_list(),
        "linkopts": attr.string_list(),
        "debian_package": attr.string(),
    },
    local = True,
)
