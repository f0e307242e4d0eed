"""Anchors, boxes, NMS and ROI pooling."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(119)

ops = paddle.vision.ops
feature = static.data("feature", [1, 8, 6, 6])
boxes = static.data("boxes", [4, 4])
count = static.data("count", [1], "int32")
roi = ops.roi_align(feature, boxes, count, 3)
pooled = ops.roi_pool(feature, boxes, count, 2)
head = static.nn.fc(paddle.concat([paddle.flatten(roi, 1), paddle.flatten(pooled, 1)], 1), 4)
scores = paddle.nn.functional.sigmoid(static.nn.fc(paddle.flatten(roi, 1), 1))
keep = ops.nms(boxes, 0.3, scores=paddle.flatten(scores))
yolo, yolo_scores = ops.yolo_box(static.nn.conv2d(feature, 14, 1), paddle.full([1, 2], 96, "int32"),
                                 [10, 13, 16, 30], 2, 0.01, 16)
loss = paddle.mean(paddle.nn.functional.smooth_l1_loss(head, boxes))
paddle.optimizer.SGD(0.01).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(3):
    corner = random.rand(4, 2) * 3
    batch = {"feature": random.rand(1, 8, 6, 6).astype("float32"), "count": np.array([4], "int32"),
             "boxes": np.concatenate([corner, corner + 1 + random.rand(4, 2) * 2],
                                     1).astype("float32")}
    results += exe.run(feed=batch, fetch_list=[loss, roi, keep, yolo, yolo_scores])
