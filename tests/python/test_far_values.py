"""Numbers that no sensible program has, in all operators: results or errors, no crash."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COUNT = int(os.environ.get("HEDDLE_FAR_COUNT", "1200"))
FIRST = int(os.environ.get("HEDDLE_FAR_SEED", "1"))

# Where numbers become sizes and places in memory.
PLACES = """bilinear_interp_v2 box_clip deformable_conv density_prior_box distribute_fpn_proposals
    generate_proposals graph_sample_neighbors grid_sampler im2sequence linspace matrix_nms
    mine_hard_examples multiclass_nms nearest_interp_v2 onnx_grid_sample onnx_resize
    precision_recall psroi_pool psroi_pool_grad range repeat_interleave
    repeat_interleave_grad roi_align roi_pool segment_pool shard_index temporal_shift
    crop_and_resize histogram_fixed_width unfold unique unpool weighted_sample_neighbors
    yolov3_loss""".split()


@pytest.mark.parametrize("operators", [[], PLACES], ids=["all", "places"])
def test_far_values_are_refused_or_answered(operators):
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-X", "faulthandler", str(HERE / "far_values.py"),
         str(FIRST), str(COUNT), *operators],
        capture_output=True, text=True, timeout=600, check=False)
    assert made.returncode == 0 and made.stdout.strip() == "ok", made.stderr[-2000:]
