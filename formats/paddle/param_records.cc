#include "formats/paddle/param_records.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/error.h"
#include "core/memory/bytes.h"
#include "core/memory/lazy_buffer.h"
#include "core/memory/truths.h"
#include "core/shapes.h"
#include "proto/framework.pb.h"

namespace heddle::paddle {

using formats::DataFile;

namespace {

constexpr size_t kWindow = 16 << 10;  // headers and small tensors are read several at a time

}  // namespace

size_t RecordReader::ShelfBytes(DType dtype, const Shape& shape) {
  if (dtype != DType::kF32 || !shape.is_static()) return 0;
  const size_t bytes = BytesFor(dtype, shape);
  return bytes < kLeastLater ? (bytes + 63) / 64 * 64 : 0;
}

Status RecordReader::Open() {
  if (file_ == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(file_, DataFile::OpenOrRead(path_));
  }
  size_ = file_->size();
  if (shelf_bytes_ > 0)
    shelf_.emplace(std::min(shelf_bytes_, size_),
                   [file = file_](void* to, size_t place, size_t bytes) {
                     HEDDLE_RETURN_IF_ERROR(file->Fill(to, bytes, place));
                     return file->CheckUnchanged();
                   });
  return Status::Ok();
}

Status RecordReader::Need(size_t bytes, const std::string& what) const {
  if (bytes > left())
    return DataLoss(path_, ": cut short: ", what, " needs ", bytes, " bytes at byte ", at_,
                    ", the file ends after ", left());
  return Status::Ok();
}

Status RecordReader::Take(void* to, size_t bytes, const std::string& what) {
  HEDDLE_RETURN_IF_ERROR(Need(bytes, what));
  char* at = static_cast<char*>(to);
  const auto from_window = [&] {
    const size_t end = window_at_ + window_.size();
    if (bytes == 0 || at_ < window_at_ || at_ >= end) return;
    const size_t n = std::min(bytes, end - at_);
    std::memcpy(at, window_.data() + (at_ - window_at_), n);
    at += n;
    at_ += n;
    bytes -= n;
  };
  from_window();
  if (bytes >= kWindow) {
    HEDDLE_RETURN_IF_ERROR(file_->Fill(at, bytes, at_));
    at_ += bytes;
  } else if (bytes > 0) {
    window_.resize(std::min(kWindow, left()));
    window_at_ = at_;
    HEDDLE_RETURN_IF_ERROR(file_->Fill(window_.data(), window_.size(), at_));
    from_window();
  }
  return Status::Ok();
}

Status RecordReader::ReadLoD(const std::string& what, LoD* lod) {
  uint64_t levels = 0;
  HEDDLE_RETURN_IF_ERROR(Take(&levels, sizeof(levels), what));
  if (levels > 16)
    return DataLoss(path_, ": ", what, ": ", levels, " LoD levels at byte ", at_ - 8);
  for (uint64_t l = 0; l < levels; ++l) {
    uint64_t bytes = 0;
    HEDDLE_RETURN_IF_ERROR(Take(&bytes, sizeof(bytes), what));
    HEDDLE_RETURN_IF_ERROR(Need(bytes, what));
    std::vector<size_t> offsets(bytes / sizeof(uint64_t));
    HEDDLE_RETURN_IF_ERROR(Take(offsets.data(), offsets.size() * sizeof(uint64_t), what));
    at_ += bytes % sizeof(uint64_t);
    lod->push_back(std::move(offsets));
  }
  return Status::Ok();
}

Result<BufferRef> RecordReader::TakeData(DType dtype, size_t bytes, const std::string& what,
                                         BufferSlab& slab) {
  HEDDLE_RETURN_IF_ERROR(Need(bytes, what));
  const bool later = bytes >= least_later_ && formats::StaysInFile(dtype, bytes, least_later_);
  BufferRef memory;
  if (later) {
    memory = formats::LeaveInFile(file_, bytes, at_);
  } else {
    if (shelf_ && dtype == DType::kF32 && bytes < least_later_) memory = shelf_->Add(bytes, at_);
    if (!memory) memory = slab.Allocate(bytes);
  }
  if (!memory) return ResourceExhausted(what, ": no memory for ", bytes, " bytes");
  if (later)
    at_ += bytes;
  else
    HEDDLE_RETURN_IF_ERROR(Take(memory->data(), bytes, what));
  if (dtype == DType::kBool) MakeTruths(memory->data(), bytes);
  return memory;
}

Result<Tensor> RecordReader::Read(const std::string& what, BufferSlab& slab) {
  uint32_t version = 0;
  HEDDLE_RETURN_IF_ERROR(Take(&version, sizeof(version), what));
  if (version != 0)
    return DataLoss(path_, ": ", what, ": tensor record of version ", version, " at byte ", at_ - 4,
                    "; 0 is expected: the file is damaged or of another format");
  LoD lod;
  HEDDLE_RETURN_IF_ERROR(ReadLoD(what, &lod));
  HEDDLE_RETURN_IF_ERROR(Take(&version, sizeof(version), what));
  int32_t desc_size = 0;
  HEDDLE_RETURN_IF_ERROR(Take(&desc_size, sizeof(desc_size), what));
  if (version != 0 || desc_size <= 0 || desc_size > 4096)
    return DataLoss(path_, ": ", what, ": damaged tensor header at byte ", at_ - 8);
  std::string desc_bytes(static_cast<size_t>(desc_size), '\0');
  HEDDLE_RETURN_IF_ERROR(Take(desc_bytes.data(), desc_bytes.size(), what));
  proto::VarType_TensorDesc desc;
  if (!desc.ParsePartialFromString(desc_bytes) || !desc.IsInitialized())
    return DataLoss(path_, ": ", what, ": damaged tensor description at byte ",
                    at_ - desc_bytes.size());
  const DType dtype = DTypeFromProto(desc.data_type());
  if (dtype == DType::kUnknown)
    return Unimplemented(path_, ": ", what, ": element type ", static_cast<int>(desc.data_type()));
  if (desc.dims_size() > Shape::kMaxRank)
    return DataLoss(path_, ": ", what, ": rank ", desc.dims_size());
  Shape shape;
  size_t bytes = SizeOf(dtype);
  for (int64_t d : desc.dims()) {
    if (d < 0 || (d > 0 && bytes > size_ / static_cast<size_t>(d) && bytes > 0))
      return DataLoss(path_, ": cut short: ", what, " has a dimension of ", d,
                      ", more than the file of ", size_, " bytes holds");
    bytes *= static_cast<size_t>(d);
    shape.push_back(d);
  }
  HEDDLE_RETURN_IF_ERROR(Need(bytes, what));
  HEDDLE_ASSIGN_OR_RETURN(BufferRef memory, TakeData(dtype, bytes, what, slab));
  Tensor t(dtype, shape, std::move(memory));
  if (!lod.empty()) t.set_lod(std::move(lod));
  return t;
}

}  // namespace heddle::paddle
