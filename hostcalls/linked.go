package hostcalls

import (
	"context"
	"encoding/binary"
	"fmt"
	"unsafe"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/engine/abi"
)

const (
	// places is how many calls of one import are kept: the present one at place 0,
	// or at one of the others when it is small and may be asked again.
	places = 5
	// smallCall is how many bytes of arguments are kept at those.
	smallCall = 256
)

// A linked import keeps its newest calls, so that a guest that asks the same
// things in a loop has them decoded once; each is judged and recorded like any
// other call.
type linked struct {
	body
	h      *Host
	gate   *gate.Gate
	calls  [places]call
	def    def
	op     *gate.Op
	newest int      // the place that was taken last
	passed abi.Held // the arguments at place 0
}

// A call is one with its own copy of the arguments.
type call struct {
	since  uint64     // h.others when it was made
	args   []argument // as the guest passed them
	long   bool       // one of them is longer than what is kept of its beginning
	place  int
	total  int64 // bytes of args
	denial error // how the guest was told that it is denied
	errno  uint64
	answer gate.Answer
	own    []byte   // what args view
	in     []string // args without the values of secrets
}

// answer is what the engine calls. A known call is mostly found without calling
// anything, for which all that this goes by would have to be put away.
//
//go:noinline
func (l *linked) answer() func(ctx context.Context, mem []byte, stack []uint64) error {
	h, door := l.h, l.gate
	return func(ctx context.Context, mem []byte, stack []uint64) error {
		var c *call
	calls:
		for i := 1; i < places; i++ {
			if c = &l.calls[i]; c.since != h.others {
				continue
			}
			s, args, whole := stack, c.args, c.long
			for j := range args {
				a := &args[j]
				if len(s) < 2 || uint64(uint32(s[1])) != a.n {
					continue calls
				}
				at := uint64(uint32(s[0]))
				if at+8 > uint64(len(mem)) {
					whole = true // there are no eight bytes
				} else if (binary.NativeEndian.Uint64(mem[at:at+8])^a.first)&a.mask != 0 {
					continue calls
				}
				s = s[2:]
			}
			if len(s) >= 2 && inside(mem, s[0], s[1]) && (!whole || c.same(mem, stack)) {
				goto found
			}
		}
		return l.anew(ctx, mem, stack, nil)
	found:
		if !door.Again(&c.answer) {
			return l.anew(ctx, mem, stack, c)
		}
		h.moved += c.total
		if h.unread || h.cfg.Secrets != nil {
			if err := l.begin(ctx); err != nil {
				return err
			}
		}
		if c.denial != nil {
			h.failed, h.unread = c.denial, true
			stack[0] = c.errno
			return nil
		}
		resp, err := l.redo(ctx, c.answer.Permit, c.place)
		if err == nil && len(resp) == 0 {
			stack[0] = 0
			return door.Err()
		}
		return l.respond(ctx, mem, stack, resp, err)
	}
}

// same reports whether the arguments are those of the call to their ends.
func (c *call) same(mem []byte, stack []uint64) bool {
	own := c.own
	for i, a := range c.args {
		v, ok := view(mem, stack[2*i], stack[2*i+1])
		if !ok || string(v) != string(own[:a.n]) {
			return false
		}
		own = own[a.n:]
	}
	return true
}

// An argument is one with its first bytes, by which most are told apart.
type argument struct {
	n, first, mask uint64
}

func argumentOf(text string) argument {
	var first, mask [8]byte
	for i := range copy(first[:], text) {
		mask[i] = 0xff
	}
	return argument{uint64(len(text)), binary.NativeEndian.Uint64(first[:]), binary.NativeEndian.Uint64(mask[:])}
}

// begin lets go of what the guest did not read of the last answer.
func (l *linked) begin(ctx context.Context) error {
	h := l.h
	h.calling = l.def.name
	h.pending, h.failed, h.unread = nil, nil, false
	return h.held.Set(ctx, cap(h.out))
}

// anew answers a call as the first of its kind, at the place of the same one if
// that is known.
func (l *linked) anew(ctx context.Context, mem []byte, stack []uint64, same *call) error {
	if err := l.begin(ctx); err != nil {
		return err
	}
	c, errno, err := l.copyIn(ctx, mem, stack, same)
	if err != nil {
		return err
	}
	n := 2 * l.def.args
	if !inside(mem, stack[n], stack[n+1]) {
		errno = Fault
	}
	resp, err := l.first(ctx, c, errno)
	if err := l.giveUp(ctx); err != nil {
		return err
	}
	return l.respond(ctx, mem, stack, resp, err)
}

// first does the call, unless its arguments have an error.
func (l *linked) first(ctx context.Context, c *call, errno Errno) ([]byte, error) {
	h := l.h
	if l.redo == nil {
		h.others++ // which may have made known what others are to be asked anew for
	}
	if errno != 0 {
		return nil, l.refuse(errno)
	}
	if !l.def.gated {
		if den, hidden := l.gate.Hidden(l.op); hidden {
			return nil, denied(den, "")
		}
		if !l.gate.Spend() {
			return nil, errSpent
		}
	}
	since := h.others
	if h.cfg.Secrets != nil && l.def.gated {
		for i, passed := range c.in { // a guest hands on handles, never values
			if c.in[i] = h.scrubText(passed); c.in[i] != passed {
				since = 0 // to be told of each time
			}
		}
	}
	resp, a, err := l.call(ctx, c.in, c.place)
	c.since, c.answer, c.denial = since, a, nil
	if !a.OK() && err != nil {
		c.denial, c.errno = err, number(errnoOf(err))
	}
	return resp, err
}

// giveUp lets go of arguments that are too large to be kept for the next call.
func (l *linked) giveUp(ctx context.Context) error {
	if len(l.calls[0].own) <= MaxArguments {
		return nil
	}
	l.calls[0].own = nil
	clear(l.calls[0].in)
	return l.passed.Set(ctx, 0)
}

// refuse records a call whose arguments are not even copied.
func (l *linked) refuse(errno Errno) error {
	if l.def.gated {
		l.gate.Refuse(l.op, caps.Request{Family: l.def.family}, "", caps.InvalidRequest)
	}
	if errno == TooBig {
		return &Fail{Errno: errno, Hint: fmt.Sprintf("the arguments of %s are at most %d bytes together", l.def.name,
			max(MaxArguments, l.def.most))}
	}
	return &Fail{Errno: errno, Hint: "a pointer and its length reach beyond the memory"}
}

// aside does what may take long while others make calls, and goes on as the same call.
func aside[A, B any](h *Host, do func() (A, B)) (A, B) {
	if lock := h.cfg.Lock; lock != nil {
		calling, remark, consent := h.calling, h.remark, h.consent
		lock.Unlock()
		defer func() { lock.Lock(); h.calling, h.remark, h.consent = calling, remark, consent }()
	}
	return do()
}

// respond gives the guest the response of a call, or says why there is none.
func (l *linked) respond(ctx context.Context, mem []byte, stack []uint64, resp []byte, err error) error {
	if err == nil && len(resp) == 0 {
		stack[0] = 0
		return l.gate.Err()
	}
	if err := l.h.held.Set(ctx, max(len(resp), cap(l.h.out))); err != nil {
		return err
	}
	if len(resp) > cap(l.h.out) {
		l.h.unread = true
	}
	if l.h.cfg.Secrets != nil && !l.def.framed {
		resp = l.h.scrub(resp)
	}
	l.h.moved += int64(len(resp))
	n := 2 * l.def.args
	dst, _ := view(mem, stack[n], stack[n+1])
	stack[0] = l.h.respond(dst, resp, err)
	return l.gate.Err()
}

// copyIn copies the arguments out of guest memory once, to the place of the same
// call or of the oldest; what is judged is what is used, whatever the guest writes
// there later.
func (l *linked) copyIn(ctx context.Context, mem []byte, stack []uint64, same *call) (c *call, errno Errno, err error) {
	c = &l.calls[0]
	total := 0
	for i := range l.def.args {
		v, ok := view(mem, stack[2*i], stack[2*i+1])
		if !ok {
			return c, Fault, nil
		}
		if total += len(v); total > max(MaxArguments, l.def.most) {
			return c, TooBig, nil
		}
	}
	if same != nil {
		c = same
	} else if l.redo != nil && total <= smallCall {
		l.newest = l.newest%(places-1) + 1
		c = &l.calls[l.newest]
		c.place = l.newest
	}
	c.since, c.total, c.long = 0, int64(total), false
	l.h.moved += c.total
	if err := l.grow(ctx, c, total); err != nil {
		return c, 0, err
	}
	rest := c.own[:total]
	for i := range c.in {
		v, _ := view(mem, stack[2*i], stack[2*i+1])
		n := copy(rest, v)
		c.in[i] = unsafe.String(unsafe.SliceData(rest), n)
		c.args[i] = argumentOf(c.in[i])
		c.long = c.long || n > 8
		rest = rest[n:]
	}
	return c, 0, nil
}

// grow makes room for so many bytes of arguments.
func (l *linked) grow(ctx context.Context, c *call, total int) error {
	if c.in == nil {
		c.in, c.args = make([]string, l.def.args), make([]argument, l.def.args)
	}
	if c.place > 0 {
		total = smallCall
	}
	if cap(c.own) >= total && l.h.cfg.Lock == nil { // else one that waits aside still views them
		return nil
	}
	if c.place == 0 {
		if err := l.passed.Set(ctx, total); err != nil {
			return err
		}
	}
	c.own = make([]byte, total)
	return nil
}
