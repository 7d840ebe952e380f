// Queue pairs: their states, posting, completing, failing.
#include <cerrno>

#include "fabric/verbs/stub/stub_objects.h"

namespace stag::fabric::stub {
namespace {

Qp& queue_pair_of(ibv_qp* qp) {
  return *static_cast<Qp*>(qp);
}

ibv_wc_opcode completed(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    default:
      return IBV_WC_SEND;
  }
}

// A request has ended, and frees `slots` of the queue when that is polled.
void report(Qp& qp, const Request& request, ibv_wc_status status, unsigned slots) {
  Entry entry;
  entry.completion.wr_id = request.work.wr_id;
  entry.completion.status = status;
  // Of a failed request only these two and the queue pair's number mean anything.
  entry.completion.opcode =
      status == IBV_WC_SUCCESS ? completed(request.work.opcode) : IBV_WC_DRIVER3;
  entry.completion.qp_num = qp.qp_num;
  entry.slots = slots;
  push_completion(qp.send_cq, entry, false);
}

// The first request of the queue has ended.
void complete_send(Qp& qp, ibv_wc_status status) {
  const Request request = std::move(qp.sends.front());
  qp.sends.pop_front();
  ++qp.unreported;
  const bool signalled = qp.signal_all || (request.work.send_flags & IBV_SEND_SIGNALED) != 0;
  if (!signalled && status == IBV_WC_SUCCESS) return;
  report(qp, request, status, std::exchange(qp.unreported, 0));
}

// Linux's siw performs, and tells of, what was posted after a Read before the answer to that comes.
bool is_answered_late(const Qp& qp) {
  return device_of(qp.context).options.iwarp && qp.sends.front().work.opcode == IBV_WR_RDMA_READ;
}

void ask(Qp& qp) {
  qp.reads.push_back(std::move(qp.sends.front()));
  qp.sends.pop_front();
}

void answer_reads(Qp& qp) {
  const Locked network;
  while (!network->reads_held && qp.state == IBV_QPS_RTS && !qp.reads.empty()) {
    const ibv_wc_status status = *execute(qp, qp.reads.front());
    // What fails may have flushed it.
    if (qp.reads.empty()) return;
    const Request request = std::move(qp.reads.front());
    qp.reads.pop_front();
    report(qp, request, status, 1);
    if (status != IBV_WC_SUCCESS) fail_qp(qp);
  }
}

void flush_queues(Qp& qp) {
  for (; !qp.reads.empty(); qp.reads.pop_front())
    report(qp, qp.reads.front(), IBV_WC_WR_FLUSH_ERR, 1);
  while (!qp.sends.empty()) complete_send(qp, IBV_WC_WR_FLUSH_ERR);
  for (; !qp.receives.empty(); qp.receives.pop_front()) {
    Entry entry;
    entry.completion.wr_id = qp.receives.front().id;
    entry.completion.status = IBV_WC_WR_FLUSH_ERR;
    entry.completion.opcode = IBV_WC_DRIVER3;
    entry.completion.qp_num = qp.qp_num;
    push_completion(qp.recv_cq, entry, false);
  }
}

bool accepts_sends(const Qp& qp) {
  return qp.state == IBV_QPS_RTS || qp.state == IBV_QPS_ERR;
}

// What the system finds out at once about a request; 0 when it is good.
int judge(const Qp& qp, const ibv_send_wr& work) {
  const StubOptions& device = device_of(qp.context).options;
  const bool inlined = (work.send_flags & IBV_SEND_INLINE) != 0;
  std::uint64_t length = 0;
  for (int i = 0; i < work.num_sge; ++i) length += work.sg_list[i].length;
  if (!accepts_sends(qp)) return EINVAL;
  if (qp.slots >= qp.limits.max_send_wr) return ENOMEM;
  if (work.num_sge > static_cast<int>(qp.limits.max_send_sge)) return EINVAL;
  if (work.opcode == IBV_WR_RDMA_READ && work.num_sge > device.attributes.max_sge_rd) return EINVAL;
  if (inlined && (work.opcode == IBV_WR_RDMA_READ || length > qp.limits.max_inline_data))
    return EINVAL;
  // librxe looks at what a binding does not use.
  if (work.opcode == IBV_WR_BIND_MW && work.imm_data != 0) return EINVAL;
  // libsiw posts neither.
  const bool windows = work.opcode == IBV_WR_BIND_MW || work.opcode == IBV_WR_LOCAL_INV;
  if (windows && device.attributes.max_mw == 0) return EINVAL;
  const bool invalidates = windows || work.opcode == IBV_WR_SEND_WITH_INV;
  return invalidates && !device.windows_in_library ? EINVAL : 0;
}

Request copy_of(ibv_context* context, const ibv_send_wr& work) {
  Request request;
  request.work = work;
  request.work.next = nullptr;
  if (work.opcode == IBV_WR_BIND_MW) request.window_key = work.bind_mw.mw->rkey;
  request.memory.assign(work.sg_list, work.sg_list + work.num_sge);
  if ((work.send_flags & IBV_SEND_INLINE) == 0) return request;
  const bool first_alone = device_of(context).options.inline_first_sge;
  for (const ibv_sge& piece : request.memory) {
    const auto* from = reinterpret_cast<const std::byte*>(piece.addr);
    request.bytes.insert(request.bytes.end(), from, from + piece.length);
    if (first_alone) break;
  }
  return request;
}

int post_send(ibv_qp* its, ibv_send_wr* work, ibv_send_wr** bad) {
  const Locked network;
  Qp& qp = queue_pair_of(its);
  for (; work != nullptr; work = work->next) {
    const int error = made_to_fail("ibv_post_send") ? ENOMEM : judge(qp, *work);
    if (error != 0) {
      *bad = work;
      advance(qp);
      return error;
    }
    ++qp.slots;
    qp.sends.push_back(copy_of(qp.context, *work));
  }
  advance(qp);
  return 0;
}

int post_recv(ibv_qp* its, ibv_recv_wr* work, ibv_recv_wr** bad) {
  const Locked network;
  Qp& qp = queue_pair_of(its);
  for (; work != nullptr; work = work->next) {
    if (qp.state == IBV_QPS_RESET || qp.srq != nullptr ||
        qp.receives.size() >= qp.limits.max_recv_wr || made_to_fail("ibv_post_recv")) {
      *bad = work;
      return qp.state == IBV_QPS_RESET || qp.srq != nullptr ? EINVAL : ENOMEM;
    }
    qp.receives.push_back({work->wr_id, {work->sg_list, work->sg_list + work->num_sge}});
  }
  if (qp.state == IBV_QPS_ERR) flush_queues(qp);
  advance_all();
  return 0;
}

// Only what a program does beside RDMA-CM, which takes queue pairs through INIT, RTR and RTS.
int modify_qp(ibv_qp* its, ibv_qp_attr* attributes, int mask) {
  const Locked network;
  if (made_to_fail("ibv_modify_qp")) return ENOMEM;
  if (mask != IBV_QP_STATE || attributes->qp_state != IBV_QPS_ERR) return EINVAL;
  fail_qp(queue_pair_of(its));
  return 0;
}

}  // namespace

Qp* make_qp(Id& id, ibv_pd* pd, const ibv_qp_init_attr& wishes) {
  const Locked network;
  const ibv_device_attr& limits = id.device->options.attributes;
  const auto most_wr = static_cast<std::uint32_t>(limits.max_qp_wr);
  const auto most_sge = static_cast<std::uint32_t>(limits.max_sge);
  const ibv_qp_cap& cap = wishes.cap;
  if (cap.max_send_wr > most_wr || cap.max_recv_wr > most_wr || cap.max_send_sge > most_sge ||
      cap.max_recv_sge > most_sge || cap.max_inline_data > id.device->options.max_inline ||
      wishes.qp_type != IBV_QPT_RC) {
    errno = EINVAL;
    return nullptr;
  }
  auto* qp = new Qp();
  qp->context = id.verbs;
  qp->qp_context = wishes.qp_context;
  qp->pd = pd;
  qp->send_cq = wishes.send_cq;
  qp->recv_cq = wishes.recv_cq;
  qp->srq = wishes.srq;
  qp->qp_num = network->next_number++;
  qp->state = IBV_QPS_INIT;
  qp->qp_type = IBV_QPT_RC;
  qp->limits = cap;
  qp->signal_all = wishes.sq_sig_all != 0;
  qp->id = &id;
  ++static_cast<Cq*>(qp->send_cq)->queues;
  ++static_cast<Cq*>(qp->recv_cq)->queues;
  if (qp->srq != nullptr) ++static_cast<Srq*>(qp->srq)->queues;
  ++pd_of(pd).children;
  network->queue_pairs.insert(qp);
  ++network->objects;
  return qp;
}

void unmake_qp(Qp& qp) {
  const Locked network;
  if (qp.remote != nullptr) qp.remote->remote = nullptr;
  network->queue_pairs.erase(&qp);
  --static_cast<Cq*>(qp.send_cq)->queues;
  --static_cast<Cq*>(qp.recv_cq)->queues;
  if (qp.srq != nullptr) --static_cast<Srq*>(qp.srq)->queues;
  --pd_of(qp.pd).children;
  for (auto& [key, window] : std::map(device_of(qp.context).windows))
    if (window->qp == &qp) invalidate(qp, key);
  std::deque<ibv_async_event>& events = static_cast<Context*>(qp.context)->async_events;
  std::erase_if(events, [&qp](const ibv_async_event& event) {
    return event.event_type != IBV_EVENT_PORT_ERR && event.element.qp == &qp;
  });
  --network->objects;
  delete &qp;
}

void fail_qp(Qp& qp) {
  if (qp.state == IBV_QPS_ERR) return;
  qp.state = IBV_QPS_ERR;
  flush_queues(qp);
  // Receives of a shared queue are not flushed; this event says that no more will come.
  if (qp.srq != nullptr && !qp.taken) report_async(qp.context, IBV_EVENT_QP_LAST_WQE_REACHED, &qp);
  if (!device_of(qp.context).options.iwarp) return;
  Qp* remote = qp.remote;
  end_connection(*qp.id);
  if (remote != nullptr) fail_qp(*remote);
}

void end_message(Qp& qp) {
  Entry entry;
  entry.completion.wr_id = std::exchange(qp.taken, std::nullopt)->id;
  entry.completion.status = IBV_WC_WR_FLUSH_ERR;
  entry.completion.opcode = IBV_WC_DRIVER3;
  entry.completion.qp_num = qp.qp_num;
  push_completion(qp.recv_cq, entry, false);
  report_async(qp.context, IBV_EVENT_QP_LAST_WQE_REACHED, &qp);
}

void join(Qp& a, Qp& b) {
  a.remote = &b;
  b.remote = &a;
  a.state = b.state = IBV_QPS_RTS;
}

void advance(Qp& qp) {
  const Locked network;
  if (qp.state == IBV_QPS_ERR) return flush_queues(qp);
  while (!network->held && qp.state == IBV_QPS_RTS && !qp.sends.empty()) {
    if (is_answered_late(qp)) {
      ask(qp);
      continue;
    }
    const auto status = execute(qp, qp.sends.front());
    if (!status) break;
    // A failing remote side of iWARP may have flushed this one.
    if (!qp.sends.empty()) complete_send(qp, *status);
    if (*status != IBV_WC_SUCCESS) fail_qp(qp);
  }
  answer_reads(qp);
}

void advance_all() {
  const Locked network;
  for (Qp* qp : std::set(network->queue_pairs)) advance(*qp);
}

void fill_qp_functions(VerbsFunctions& functions, ibv_context_ops& operations) {
  functions.modify_qp = modify_qp;
  operations.post_send = post_send;
  operations.post_recv = post_recv;
}

}  // namespace stag::fabric::stub
