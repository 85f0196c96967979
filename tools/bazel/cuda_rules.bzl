"""cuda_library, if_cuda and kernel_figures: CUDA in BUILD files, with a toolkit and without."""

load("@local_cuda//:defs.bzl", "CUDA_FOUND", "CUDA_HOME", "NVCC_BUILD")

# Code for Hopper, and intermediate code that drivers compile for later GPUs.
_ARCHITECTURE = "-gencode=arch=compute_90,code=[sm_90,compute_90]"

# Keeps the output of nvcc. Shows all of it if nvcc fails, and otherwise the lines that are not
# figures of a kernel.
_NVCC = """
nvcc=$1 log=$2
shift 2
if ! "$nvcc" "$@" 2>"$log"; then
  cat "$log" >&2
  exit 1
fi
grep -vE '^ptxas info|bytes stack frame' "$log" >&2
true
"""

def _nvcc_impl(ctx):
    cc = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    objects = []
    logs = []
    for src in ctx.files.srcs:
        stem = "_nvcc/%s/%s" % (ctx.label.name, src.basename)
        object = ctx.actions.declare_file(stem + ".pic.o")
        log = ctx.actions.declare_file(stem + ".ptxas")
        args = ctx.actions.args()
        args.add_all([CUDA_HOME + "/bin/nvcc", log])
        args.add_all(["-c", "-std=c++20", "-O2", _ARCHITECTURE, "-Xptxas=-v"])
        # The same options as for host code: see .bazelrc.
        args.add("-Xcompiler=-fPIC,-Wall,-g1,-ffp-contract=off")
        args.add_all(cc.defines, before_each = "-D")
        args.add_all(["-I.", "-I" + ctx.bin_dir.path])
        args.add_all(cc.includes, before_each = "-I")
        args.add_all(cc.quote_includes, before_each = "-I")
        args.add_all(cc.system_includes, before_each = "-isystem")
        args.add_all(["-o", object, src])
        ctx.actions.run_shell(
            command = _NVCC,
            arguments = [args],
            inputs = depset([src] + ctx.files.hdrs, transitive = [cc.headers]),
            outputs = [object, log],
            mnemonic = "Nvcc",
            progress_message = "Compiling %s" % src.short_path,
            # NVCC_BUILD keeps the cache from using an object of another toolkit.
            env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "NVCC_BUILD": NVCC_BUILD},
        )
        objects.append(object)
        logs.append(log)
    return [
        DefaultInfo(files = depset(objects)),
        OutputGroupInfo(ptxas = depset(logs)),
    ]

_nvcc = rule(
    implementation = _nvcc_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = True),
        "deps": attr.label_list(providers = [CcInfo]),
    },
)

def if_cuda(yes, no = []):
    """`yes` if there is a toolkit, else `no`: for lists in BUILD files."""
    return yes if CUDA_FOUND else no

def cuda_library(name, srcs, hdrs = [], without_cuda = [], deps = [], **kwargs):
    """A cc_library. nvcc compiles its .cu files, and g++ compiles the others.

    `NAME_ptxas` has one file per .cu file, with the registers and spills of each kernel.

    Args:
      name: of the cc_library
      srcs: .cu and .cc files
      hdrs: headers for those who use it
      without_cuda: .cc files to compile in place of `srcs` where there is no toolkit
      deps: libraries; the toolkit's own headers and runtime are always added
      **kwargs: of cc_library
    """
    device_srcs = [src for src in srcs if src.endswith(".cu")]
    host_srcs = [src for src in srcs if src not in device_srcs]
    if CUDA_FOUND:
        _nvcc(name = name + "_nvcc", srcs = device_srcs, hdrs = hdrs, deps = deps)
    native.filegroup(
        name = name + "_ptxas",
        srcs = if_cuda([name + "_nvcc"]),
        output_group = "ptxas",
    )
    native.cc_library(
        name = name,
        srcs = if_cuda([name + "_nvcc"] + host_srcs, without_cuda),
        hdrs = hdrs,
        linkstatic = 1,
        deps = deps + if_cuda(["@local_cuda//:cudart"]),
        **kwargs
    )

def kernel_figures(name, out):
    """One file with what ptxas reports on each cuda_library above this call in the BUILD file.

    Args:
      name: of the rule
      out: the name of the file, which is empty where there is no toolkit
    """
    native.genrule(
        name = name,
        srcs = [rule for rule in native.existing_rules() if rule.endswith("_ptxas")],
        outs = [out],
        cmd = "cat $(SRCS) /dev/null > $@",
    )
