// A file descriptor watched by a loop: the readiness that every socket of this module is built on.
#pragma once

#include <memory>

#include "base/reason.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "base/unique_function.h"

namespace stag::net {

class EpollLoop;

// Reads from a descriptor again and again.
class Reader {
 public:
  virtual void on_readable() = 0;

 protected:
  ~Reader() = default;
};

// Used and destroyed on the loop's thread.
class Descriptor {
 public:
  using Function = UniqueFunction<void()>;

  Descriptor();
  // Takes over `fd`, which must be non-blocking.
  static Result<Descriptor, Reason> watch(EpollLoop& loop, UniqueFd fd);
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  // Functions still waiting are dropped.
  ~Descriptor();

  // -1 once closed.
  int fd() const;
  EpollLoop& loop() const;
  bool closed() const { return fd() < 0; }

  // Runs `function` once, in a later turn, when reading (or an accept) may succeed, has failed or
  // the descriptor was closed. It may come early: try, and wait again. A function still waiting is
  // replaced. Costs no system call.
  void when_readable(Function&& function);
  // The same with reader.on_readable() as the function; `reader` outlives the waiting.
  void when_readable(Reader& reader);
  void when_writable(Function&& function);
  void ignore_readable();
  // A read has brought something: of a stream, where more is likely to come from next. A loop that
  // has nothing to do may then run what waits here now and again without being told.
  void mark_read();
  // A read (a write, an accept) has found that there is nothing more just now. Readiness is told at
  // its edge, so who does not say this is told of it again and again, and waits for nothing.
  void mark_unreadable();
  void mark_unwritable();

  // The time that this descriptor takes counts together with that of all others of this name: where
  // a loop has several to tell, those come first that have used the least lately.
  void share_usage(const std::string& name);

  // Others of the loop wait for their turn, too: the one that is told now does little, and comes
  // again.
  bool crowded() const;

  // Idempotent. Functions that wait run in a later turn.
  void close();
  // Ends the watching but not the descriptor, which another loop may then watch. Functions that
  // wait are dropped.
  UniqueFd release();

  // For the sockets of this module (descriptor_state.h); null where there is none.
  struct State;
  State* state() const { return state_.get(); }

 private:
  explicit Descriptor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stag::net
