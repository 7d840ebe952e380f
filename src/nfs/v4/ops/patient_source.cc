#include "nfs/v4/ops/patient_source.h"

#include "base/reason.h"

namespace stag::nfs::nfs4 {

void PatientSource::look_again(Duration after) {
  limit_ = home_.after(after, [this] {
    const Duration silent = home_.now() - heard_;
    if (silent < kSourcePatience) return look_again(kSourcePatience - silent);
    late_ = true;
    waits_.cancel();
  });
}

void PatientSource::begin_to_wait() {
  if (waiting_ == 0) {
    heard_ = home_.now();
    look_again(kSourcePatience);
  }
  ++waiting_;
}

void PatientSource::end_to_wait() noexcept {
  heard_ = home_.now();
  if (--waiting_ == 0) limit_ = Timer();
}

// RFC 7862 11.1.2.1: the client copies by other means.
template <class T>
Task<SourceFile::Answer<T>> PatientSource::in_time(Task<Answer<T>> asked) {
  const Waiting waiting(*this);
  Answer<T> answer = co_await std::move(asked);
  if (answer || !late_) co_return answer;
  trace(Reason::Nfs4CopySourceFailed, to_string(at_), "it does not answer");
  co_return Failure{v4::NFS4ERR_OFFLOAD_DENIED};
}

Task<v4::nfsstat4> PatientSource::open(SourceServers& servers, SourcePlace place, SourceArgs args) {
  auto opened = co_await in_time(servers.open(std::move(place), std::move(args), waits_));
  if (!opened) co_return opened.error();
  file_ = *std::move(opened);
  co_return v4::NFS4_OK;
}

Task<SourceFile::Answer<std::uint64_t>> PatientSource::size() {
  return in_time(file_->size());
}

Task<SourceFile::Answer<SourceFile::Part>> PatientSource::read(std::uint64_t offset,
                                                               MutableBytes to) {
  return in_time(file_->read(offset, to));
}

Task<void> PatientSource::close() {
  const Waiting waiting(*this);
  co_await file_->close();
}

}  // namespace stag::nfs::nfs4
