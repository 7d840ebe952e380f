// Completion channels and queues, shared receive queues.
#include <algorithm>
#include <cerrno>

#include "fabric/verbs/stub/stub_objects.h"

namespace stag::fabric::stub {
namespace {

CompletionChannel& channel_of(ibv_comp_channel* channel) {
  return *static_cast<CompletionChannel*>(channel);
}
Cq& cq_of(ibv_cq* cq) {
  return *static_cast<Cq*>(cq);
}
Srq& srq_of(ibv_srq* srq) {
  return *static_cast<Srq*>(srq);
}

ibv_comp_channel* create_comp_channel(ibv_context* context) {
  const Locked network;
  if (made_to_fail("ibv_create_comp_channel")) return nullptr;
  auto* channel = new CompletionChannel();
  channel->context = context;
  channel->fd = channel->signal.fd();
  ++network->objects;
  return channel;
}

int destroy_comp_channel(ibv_comp_channel* channel) {
  const Locked network;
  expect_open(channel->context);
  if (channel_of(channel).queues != 0) return EBUSY;
  --network->objects;
  delete &channel_of(channel);
  return 0;
}

ibv_cq* create_cq(ibv_context* context, int entries, void* user, ibv_comp_channel* channel, int) {
  const Locked network;
  if (made_to_fail("ibv_create_cq")) return nullptr;
  if (entries < 1 || entries > device_of(context).options.attributes.max_cqe) {
    errno = EINVAL;
    return nullptr;
  }
  auto* cq = new Cq();
  cq->context = context;
  cq->channel = channel;
  cq->cq_context = user;
  cq->cqe = entries;
  if (channel != nullptr) ++channel_of(channel).queues;
  ++network->objects;
  return cq;
}

int destroy_cq(ibv_cq* its) {
  const Locked network;
  expect_open(its->context);
  Cq& cq = cq_of(its);
  if (cq.queues != 0) return EBUSY;
  if (cq.unacknowledged != 0) misuse("ibv_destroy_cq would wait for unacknowledged events");
  if (cq.channel != nullptr) {
    CompletionChannel& channel = channel_of(cq.channel);
    --channel.queues;
    std::erase(channel.events, &cq);
  }
  --network->objects;
  delete &cq;
  return 0;
}

int get_cq_event(ibv_comp_channel* its, ibv_cq** cq, void** user) {
  const Locked network;
  CompletionChannel& channel = channel_of(its);
  if (channel.events.empty()) {
    if (!channel.signal.nonblocking()) misuse("ibv_get_cq_event would block");
    errno = EAGAIN;
    return -1;
  }
  *cq = channel.events.front();
  *user = (*cq)->cq_context;
  ++cq_of(*cq).unacknowledged;
  channel.events.pop_front();
  if (channel.events.empty()) channel.signal.clear();
  return 0;
}

void ack_cq_events(ibv_cq* cq, unsigned count) {
  const Locked network;
  if (count > cq_of(cq).unacknowledged) return misuse("more events acknowledged than there were");
  cq_of(cq).unacknowledged -= count;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  const Locked network;
  if (made_to_fail("ibv_req_notify_cq")) return ENOMEM;
  cq_of(cq).armed = solicited_only != 0 ? Cq::Armed::Solicited : Cq::Armed::Any;
  return 0;
}

int poll_cq(ibv_cq* its, int most, ibv_wc* completions) {
  const Locked network;
  Cq& cq = cq_of(its);
  int count = 0;
  for (; count < most && !cq.entries.empty(); ++count) {
    const Entry& entry = cq.entries.front();
    completions[count] = entry.completion;
    for (Qp* qp : network->queue_pairs)
      if (qp->qp_num == entry.completion.qp_num) qp->slots -= entry.slots;
    cq.entries.pop_front();
  }
  return count;
}

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* wishes) {
  const Locked network;
  if (made_to_fail("ibv_create_srq")) return nullptr;
  const ibv_device_attr& limits = device_of(pd->context).options.attributes;
  if (wishes->attr.max_wr == 0 ||
      wishes->attr.max_wr > static_cast<std::uint32_t>(limits.max_srq_wr)) {
    errno = EINVAL;
    return nullptr;
  }
  auto* srq = new Srq();
  srq->context = pd->context;
  srq->srq_context = wishes->srq_context;
  srq->pd = pd;
  srq->limit = wishes->attr.max_wr;
  ++pd_of(pd).children;
  ++network->objects;
  network->shared_queues.insert(srq);
  return srq;
}

int destroy_srq(ibv_srq* its) {
  const Locked network;
  expect_open(its->context);
  Srq& srq = srq_of(its);
  if (srq.queues != 0) return EBUSY;
  --pd_of(srq.pd).children;
  --network->objects;
  network->shared_queues.erase(&srq);
  std::erase_if(
      static_cast<Context*>(srq.context)->async_events, [its](const ibv_async_event& event) {
        return event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == its;
      });
  delete &srq;
  return 0;
}

int modify_srq(ibv_srq* its, ibv_srq_attr* attributes, int mask) {
  const Locked network;
  if (made_to_fail("ibv_modify_srq")) return ENOMEM;
  if (mask != IBV_SRQ_LIMIT || attributes->srq_limit > srq_of(its).limit) return EINVAL;
  srq_of(its).low = attributes->srq_limit;
  return 0;
}

int post_srq_recv(ibv_srq* its, ibv_recv_wr* work, ibv_recv_wr** bad) {
  const Locked network;
  Srq& srq = srq_of(its);
  for (; work != nullptr; work = work->next) {
    if (srq.receives.size() >= srq.limit || made_to_fail("ibv_post_srq_recv")) {
      *bad = work;
      return ENOMEM;
    }
    srq.receives.push_back({work->wr_id, {work->sg_list, work->sg_list + work->num_sge}});
  }
  advance_all();
  return 0;
}

}  // namespace

// As Linux's rxe it looks how many are left when it takes one.
Receive take_receive(Srq& srq) {
  Receive taken = std::move(srq.receives.front());
  srq.receives.pop_front();
  if (srq.receives.size() >= srq.low) return taken;
  srq.low = 0;
  ibv_async_event event{};
  event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  event.element.srq = &srq;
  Context& context = *static_cast<Context*>(srq.context);
  context.async_events.push_back(event);
  context.async_signal.raise();
  return taken;
}

void push_completion(ibv_cq* its, const Entry& entry, bool solicited) {
  Cq& cq = cq_of(its);
  if (static_cast<int>(cq.entries.size()) >= cq.cqe) return misuse("a completion queue overran");
  cq.entries.push_back(entry);
  const bool tells =
      cq.armed == Cq::Armed::Any || (cq.armed == Cq::Armed::Solicited &&
                                     (solicited || entry.completion.status != IBV_WC_SUCCESS));
  if (!tells || cq.channel == nullptr) return;
  cq.armed = Cq::Armed::No;
  channel_of(cq.channel).events.push_back(&cq);
  channel_of(cq.channel).signal.raise();
}

void fill_queue_functions(VerbsFunctions& functions, ibv_context_ops& operations) {
  functions.create_comp_channel = create_comp_channel;
  functions.destroy_comp_channel = destroy_comp_channel;
  functions.create_cq = create_cq;
  functions.destroy_cq = destroy_cq;
  functions.get_cq_event = get_cq_event;
  functions.ack_cq_events = ack_cq_events;
  functions.create_srq = create_srq;
  functions.destroy_srq = destroy_srq;
  functions.modify_srq = modify_srq;
  operations.req_notify_cq = req_notify_cq;
  operations.poll_cq = poll_cq;
  operations.post_srq_recv = post_srq_recv;
}

}  // namespace stag::fabric::stub
