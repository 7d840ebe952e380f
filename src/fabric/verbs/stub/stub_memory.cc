// Protection domains, memory regions and windows: who may touch what.
#include <cerrno>

#include "fabric/verbs/stub/stub_objects.h"

namespace stag::fabric::stub {
namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t pages_of(const void* address, std::size_t length) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address) / kPage;
  const auto end = (reinterpret_cast<std::uintptr_t>(address) + length + kPage - 1) / kPage;
  return (end - begin) * kPage;
}

bool inside(std::uint64_t address, std::uint64_t length, std::uint64_t begin, std::uint64_t size) {
  return address >= begin && address - begin <= size && length <= size - (address - begin);
}

// An index nobody has had, and below it the eight bits that the owner of a window chooses.
std::uint32_t fresh_key() {
  const Locked network;
  const std::uint32_t number = network->next_number++;
  return (number << 8) | ((number * 151) & 0xff);
}

ibv_pd* alloc_pd(ibv_context* context) {
  const Locked network;
  if (made_to_fail("ibv_alloc_pd")) return nullptr;
  auto* pd = new Pd();
  pd->context = context;
  ++network->objects;
  return pd;
}

int dealloc_pd(ibv_pd* pd) {
  const Locked network;
  expect_open(pd->context);
  if (pd_of(pd).children != 0) return EBUSY;
  --network->objects;
  delete &pd_of(pd);
  return 0;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  const Locked network;
  if (made_to_fail("ibv_reg_mr")) return nullptr;
  Device& device = device_of(pd->context);
  const bool writable = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
  if (length == 0 || (!writable && (access & IBV_ACCESS_REMOTE_WRITE) != 0)) {
    errno = EINVAL;
    return nullptr;
  }
  if (pages_of(address, length) > device.options.memlock - device.locked) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* region = new Mr();
  region->context = pd->context;
  region->pd = pd;
  region->addr = address;
  region->length = length;
  region->access = access;
  region->lkey = region->rkey = fresh_key();
  device.locked += pages_of(address, length);
  device.regions.emplace(region->lkey, region);
  ++pd_of(pd).children;
  ++network->objects;
  return region;
}

int dereg_mr(ibv_mr* mr) {
  const Locked network;
  expect_open(mr->context);
  auto* region = static_cast<Mr*>(mr);
  if (region->bound != 0) return EBUSY;
  Device& device = device_of(mr->context);
  device.regions.erase(mr->lkey);
  device.locked -= pages_of(mr->addr, mr->length);
  --pd_of(mr->pd).children;
  --network->objects;
  delete region;
  return 0;
}

void unbind(Mw& window) {
  if (window.region == nullptr) return;
  device_of(window.context).windows.erase(window.current_key);
  --window.region->bound;
  window.region = nullptr;
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  const Locked network;
  if (made_to_fail("ibv_alloc_mw")) return nullptr;
  const StubOptions& device = device_of(pd->context).options;
  const bool told = (device.attributes.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0;
  if (type != IBV_MW_TYPE_2 || !told || !device.windows_in_library) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  auto* window = new Mw();
  window->context = pd->context;
  window->pd = pd;
  window->type = type;
  window->rkey = window->current_key = fresh_key();
  ++pd_of(pd).children;
  ++network->objects;
  return window;
}

int dealloc_mw(ibv_mw* mw) {
  const Locked network;
  expect_open(mw->context);
  auto* window = static_cast<Mw*>(mw);
  unbind(*window);
  --pd_of(mw->pd).children;
  --network->objects;
  delete window;
  return 0;
}

}  // namespace

Pd& pd_of(ibv_pd* pd) {
  return *static_cast<Pd*>(pd);
}

ibv_wc_status check_local(Qp& qp, const std::vector<ibv_sge>& memory, int right) {
  Device& device = device_of(qp.context);
  for (const ibv_sge& piece : memory) {
    if (piece.length == 0) continue;
    const auto known = device.regions.find(piece.lkey);
    if (known == device.regions.end()) return IBV_WC_LOC_PROT_ERR;
    const Mr& region = *known->second;
    const auto begin = reinterpret_cast<std::uintptr_t>(region.addr);
    const bool may = region.valid && region.pd == qp.pd && (region.access & right) == right &&
                     inside(piece.addr, piece.length, begin, region.length);
    if (!may) return IBV_WC_LOC_PROT_ERR;
  }
  return IBV_WC_SUCCESS;
}

bool remote_access(Qp& qp, std::uint32_t key, std::uint64_t address, std::uint64_t length,
                   int right) {
  Device& device = device_of(qp.context);
  const auto window = device.windows.find(key);
  if (window != device.windows.end()) {
    const Mw& bound = *window->second;
    return bound.qp == &qp && (bound.binding.mw_access_flags & static_cast<unsigned>(right)) != 0 &&
           inside(address, length, bound.binding.addr, bound.binding.length);
  }
  const auto known = device.regions.find(key);
  if (known == device.regions.end()) return false;
  const Mr& region = *known->second;
  return region.valid && region.pd == qp.pd && (region.access & right) != 0 &&
         inside(address, length, reinterpret_cast<std::uintptr_t>(region.addr), region.length);
}

ibv_wc_status bind_window(Qp& qp, const Request& request) {
  const ibv_send_wr& work = request.work;
  auto& window = *static_cast<Mw*>(work.bind_mw.mw);
  const ibv_mw_bind_info& binding = work.bind_mw.bind_info;
  auto& region = *static_cast<Mr*>(binding.mr);
  const bool writes = (binding.mw_access_flags & IBV_ACCESS_REMOTE_WRITE) != 0;
  // A window of type 2 is invalidated before it is bound again; its owner chooses the low bits of
  // its key, and names the one it had, which rxe compares.
  const bool may = window.region == nullptr && request.window_key == window.current_key &&
                   window.pd == qp.pd && region.pd == qp.pd && region.valid &&
                   (region.access & IBV_ACCESS_MW_BIND) != 0 &&
                   (!writes || (region.access & IBV_ACCESS_LOCAL_WRITE) != 0) &&
                   (work.bind_mw.rkey >> 8) == (window.current_key >> 8) &&
                   inside(binding.addr, binding.length,
                          reinterpret_cast<std::uintptr_t>(region.addr), region.length);
  if (!may) return IBV_WC_MW_BIND_ERR;
  window.current_key = work.bind_mw.rkey;
  window.region = &region;
  window.binding = binding;
  window.qp = &qp;
  ++region.bound;
  device_of(qp.context).windows.emplace(window.current_key, &window);
  return IBV_WC_SUCCESS;
}

bool invalidate(Qp& qp, std::uint32_t key) {
  Device& device = device_of(qp.context);
  const auto window = device.windows.find(key);
  if (window != device.windows.end() && window->second->qp == &qp) {
    unbind(*window->second);
    return true;
  }
  // Linux's siw looks only at the protection domain, and regions of users are no exception.
  const auto region = device.regions.find(key);
  if (!device.options.iwarp || region == device.regions.end() || region->second->pd != qp.pd)
    return false;
  region->second->valid = false;
  return true;
}

void fill_memory_functions(VerbsFunctions& functions, ibv_context_ops& operations) {
  functions.alloc_pd = alloc_pd;
  functions.dealloc_pd = dealloc_pd;
  functions.reg_mr = reg_mr;
  functions.dereg_mr = dereg_mr;
  operations.alloc_mw = alloc_mw;
  operations.dealloc_mw = dealloc_mw;
}

}  // namespace stag::fabric::stub
