"""cuda_configure: the CUDA toolkit of this machine, if it has one, as @local_cuda.

@local_cuda//:defs.bzl is always there. Without a toolkit CUDA_FOUND in it is False and the targets
are empty, so that the same BUILD files make programs without CUDA: see cuda_rules.bzl.
"""

_ABSENT = """
package(default_visibility = ["//visibility:public"])
cc_library(name = "headers")
cc_library(name = "cudart")
"""

_PRESENT = """
package(default_visibility = ["//visibility:public"])
# For .cc files. nvcc finds its own headers. include/cccl and most other folders are left out: their
# two thousand files would be linked into the sandbox of every compilation.
cc_library(
    name = "headers",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/**"]),
    includes = ["include"],
)
cc_library(
    name = "cudart",
    srcs = ["lib/libcudart_static.a"],
    linkopts = ["-ldl", "-lpthread", "-lrt"],
    deps = [":headers"],
)
"""

_NEEDED = ["bin/nvcc", "include/cublasLt.h", "include/cudnn.h", "lib64/libcudart_static.a"]

def _toolkit(ctx):
    """The folder of the toolkit, or None."""
    if ctx.os.environ.get("DISABLE_CUDA", "0") == "1":
        return None
    wanted = ctx.os.environ.get("CUDA_HOME", "")
    home = wanted or "/usr/local/cuda"
    missing = [file for file in _NEEDED if not ctx.path(home + "/" + file).exists]
    if not missing:
        return home
    what = "%s has no %s" % (home, ", ".join(missing))
    if wanted:
        fail("CUDA_HOME: %s; name another folder, or build without CUDA: --config=cpu" % what)
    if ctx.path(home).exists:
        print("built without CUDA: " + what)  # buildifier: disable=print
    return None

def _impl(ctx):
    home = _toolkit(ctx)
    release = ""
    build = ""
    if home:
        version = ctx.execute([home + "/bin/nvcc", "--version"]).stdout.strip()
        release = version.split("release ")[1].split(",")[0]
        build = version.split("\n")[-1]
        ctx.symlink(home + "/include", "include")
        ctx.symlink(home + "/lib64/libcudart_static.a", "lib/libcudart_static.a")
    ctx.file("BUILD", _PRESENT if home else _ABSENT, executable = False)
    ctx.file("defs.bzl", "".join([
        "CUDA_FOUND = %r\n" % bool(home),
        "CUDA_HOME = %r\n" % (home or ""),
        "CUDA_RELEASE = %r\n" % release,
        "NVCC_BUILD = %r\n" % build,
    ]), executable = False)

cuda_configure = repository_rule(
    implementation = _impl,
    environ = ["CUDA_HOME", "DISABLE_CUDA"],
    local = True,
)
