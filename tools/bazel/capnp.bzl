"""capnp_cc_library: compiles .capnp schemas with /usr/bin/capnp and the result as a cc_library."""

def _gen_impl(ctx):
    outs = []
    for src in ctx.files.srcs:
        h = ctx.actions.declare_file(src.basename + ".h", sibling = src)
        c = ctx.actions.declare_file(src.basename + ".c++", sibling = src)
        args = ctx.actions.args()
        args.add("compile")
        args.add("-o/usr/bin/capnpc-c++:" + ctx.bin_dir.path)
        args.add("--src-prefix=.")
        args.add("-I.")
        args.add(src.path)
        ctx.actions.run(
            executable = "/usr/bin/capnp",
            arguments = [args],
            inputs = depset(ctx.files.srcs + ctx.files.imports),
            outputs = [h, c],
            mnemonic = "CapnpCompile",
            progress_message = "Compiling schema %s" % src.short_path,
        )
        outs += [h, c]
    return [DefaultInfo(files = depset(outs)), OutputGroupInfo(
        hdrs = depset([f for f in outs if f.extension == "h"]),
        srcs = depset([f for f in outs if f.extension == "c++"]),
    )]

_capnp_gen = rule(
    implementation = _gen_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".capnp"]),
        "imports": attr.label_list(allow_files = [".capnp"]),
    },
)

def capnp_cc_library(name, srcs, imports = [], deps = [], **kwargs):
    _capnp_gen(name = name + "_gen", srcs = srcs, imports = imports)
    native.filegroup(name = name + "_h", srcs = [name + "_gen"], output_group = "hdrs")
    native.filegroup(name = name + "_cc", srcs = [name + "_gen"], output_group = "srcs")
    native.cc_library(
        name = name,
        srcs = [name + "_cc"],
        hdrs = [name + "_h"],
        # An import of "/y/b.capnp" becomes #include <y/b.capnp.h>. The root must therefore be on
        # the list of include folders.
        strip_include_prefix = "/",
        deps = deps + ["@capnp"],
        **kwargs
    )
