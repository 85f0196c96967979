#!/usr/bin/env python3
"""check_export: compares exported networks, in onnxruntime and PyTorch, with the program's logits.

  check_export.py FOLDER…

Each FOLDER has case.json, images.f32, pixels.f32 and logits.f32, some models (*.onnx, *.py), and
perhaps stored images. Prints one line of JSON per folder. It has the largest logit, and for each
way to run the network the largest difference from the program's logits. For probabilities.onnx, it
has the largest difference of a probability. For preprocess(), it has the largest and the mean
difference of a normalised value. For photographs, it has only the mean difference of the worst
one. Exit code 77: a package is missing.
"""

import importlib.util
import json
import pathlib
import sys

MISSING = 77
# Batch sizes. `None`: all images in one batch.
BATCHES = (None, 7, 1)


def load_script(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def largest_difference(numpy, run, inputs, expected):
    """Runs one batch of each size, and returns the largest difference from `expected`."""
    largest = 0.0
    for batch in BATCHES:
        outputs = run(inputs[:batch])
        if outputs.shape != expected[:batch].shape or not numpy.isfinite(outputs).all():
            sys.exit(f"outputs of shape {outputs.shape} instead of {expected[:batch].shape}")
        largest = max(largest, float(numpy.abs(outputs - expected[:batch]).max()))
    return largest


def softmax(numpy, logits):
    powers = numpy.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def check_onnx(folder, case, arrays):
    import numpy
    import onnx
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    found = {}
    for path in sorted(folder.glob("*.onnx")):
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        output = "probabilities" if path.stem == "probabilities" else "logits"
        shape = [side.dim_value or side.dim_param
                 for side in model.graph.input[0].type.tensor_type.shape.dim]
        if (model.graph.input[0].name, shape) != ("images", ["N", *case["shape"]]):
            sys.exit(f"{path}: {model.graph.input[0]}")
        if [each.name for each in model.graph.output] != [output]:
            sys.exit(f"{path}: {model.graph.output}")
        session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])

        def run(images):
            return session.run([output], {"images": images})[0]

        inputs = arrays["pixels" if path.stem == "pixels" else "images"]
        expected = arrays["logits"]
        if path.stem == "probabilities":
            expected = softmax(numpy, expected)
        found["onnx_" + path.stem] = largest_difference(numpy, run, inputs, expected)
    return found


def check_torch(folder, arrays):
    import numpy
    import torch
    found = {}
    for path in sorted(folder.glob("*.py")):
        script = load_script(path)
        network = script.load()
        if network.training:
            sys.exit(f"{path}: load() returns a network in training mode")

        def run(images):
            with torch.inference_mode():
                return network(torch.from_numpy(images)).numpy()

        found["torch_" + path.stem] = largest_difference(
            numpy, run, arrays["images"], arrays["logits"])
    return found


def check_preprocessing(folder, case, images):
    """Compares `images` with preprocess() of what is stored: pixels in stored.u8, or JPEGs."""
    import numpy
    import torch
    script = load_script(folder / "network.py")
    if (folder / "stored.u8").exists():
        stored = numpy.fromfile(folder / "stored.u8", "uint8").reshape(-1, *case["stored"])
        views = script.preprocess(torch.from_numpy(stored)).numpy()
        one = script.preprocess(torch.from_numpy(stored[0])).numpy()
        if not (one == views[0]).all():
            sys.exit("preprocess() of one image differs from that of several")
        apart = numpy.abs(views - images)
        return {"preprocess": float(apart.max()), "preprocess_mean": float(apart.mean())}
    means = []
    from PIL import Image
    for path in sorted(folder.glob("*.jpg"), key=lambda path: int(path.stem)):
        view = script.preprocess(Image.open(path)).numpy()
        means.append(float(numpy.abs(view - images[int(path.stem)]).mean()))
    return {"preprocess_mean": max(means)} if means else {}


def main():
    try:
        import numpy
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import torch
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(MISSING)
    torch.set_num_threads(2)
    for folder in map(pathlib.Path, sys.argv[1:]):
        case = json.loads((folder / "case.json").read_text())

        def read(name, *shape):
            return numpy.fromfile(folder / f"{name}.f32", "float32").reshape(-1, *shape)

        arrays = {"images": read("images", *case["shape"]),
                  "pixels": read("pixels", *case["shape"]),
                  "logits": read("logits", case["classes"])}
        found = {"case": case["name"], "images": len(arrays["images"]),
                 "largest_logit": float(numpy.abs(arrays["logits"]).max())}
        found |= check_onnx(folder, case, arrays)
        found |= check_torch(folder, arrays)
        if case["stored"]:
            found |= check_preprocessing(folder, case, arrays["images"])
        print(json.dumps(found, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
