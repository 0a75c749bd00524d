package service

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"runloop.dev/rlp/launcher"
)

const (
	// mostUnread bounds the bytes of reports that are waited for or being sent.
	mostUnread = 128 << 20
	// partOfUnread is how much of them one caller may have: one in so many. Beyond
	// it their next runs wait.
	partOfUnread = 4
)

// A holding is a report that is in memory because somebody waits for it or sends
// it. The lock of the service guards it.
type holding struct {
	users []*user
	bytes int64
	key   string // of the caller in whose share they are
	leave func() // takes them out of it; nil: they are not counted
	cut   bool   // its users were told to end
}

// A user is who waits for a report, or sends it.
type user struct{ cut func() }

// unread is the reports that are waited for or being sent.
type unread struct {
	mu      *sync.Mutex // of the service
	most    int64       // bytes of all of them
	shares  *Shares     // the same, by caller
	sending []*Run      // whose reports these are, in the order of their ends
	begin   func()      // has runs begin that waited; the lock is held
}

// Await is for who waits for the end of r and sends its report: from that end on,
// until done is called, its bytes are in the share of whoever asked for the run. It
// is to be called before waiting for [Run.Done]. cut is called once at most, and is
// to end the sending soon: others wait for the memory. nil: nothing can end it.
func (r *Run) Await(cut func()) (done func()) {
	r.unread.mu.Lock()
	defer r.unread.mu.Unlock()
	return r.unread.use(r, r.caller, cut)
}

// Reading is for who sends the report of a run that may have ended: until done is
// called its bytes are in the share of c. A [BusyError] says that this is used up.
func (r *Run) Reading(c *Caller, cut func()) (done func(), err error) {
	u := r.unread
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.full(c) {
		return nil, u.busy()
	}
	return u.use(r, c, cut), nil
}

// full reports whether runs of c wait for reports to be read.
func (u *unread) full(c *Caller) bool { return u.shares.Full(c.Key()) }

func (u *unread) busy() error {
	return &BusyError{
		RetryAfter: latest,
		Why: fmt.Sprintf("reports that this caller has not read take %d bytes or more, and those of one caller take no "+
			"more; read them, or close their connections", u.shares.Each()),
	}
}

// use counts one more user of r's report, until done is called. The caller holds
// the lock.
func (u *unread) use(r *Run, c *Caller, cut func()) (done func()) {
	one := &user{cut}
	r.held.users = append(r.held.users, one)
	if st := r.State(); st.Ended() {
		u.take(r, c)
	}
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		r.held.users = slices.DeleteFunc(r.held.users, func(other *user) bool { return other == one })
		if len(r.held.users) == 0 {
			u.giveBack(r)
		}
	}
}

// take counts the bytes of a report that has users. What is more than there may be
// is cut off: of whoever has most, what was there first. The caller holds the lock.
func (u *unread) take(r *Run, c *Caller) {
	if len(r.held.users) == 0 || r.held.leave != nil {
		return
	}
	r.held.bytes, r.held.key = r.told(), c.Key()
	r.held.leave = u.shares.Add(r.held.key, r.held.bytes)
	u.sending = append(u.sending, r)
	u.cutOff()
}

// cutOff ends the sending of reports until the others are no more than there may
// be, or one. The caller holds the lock.
func (u *unread) cutOff() {
	by, all, n := map[string]int64{}, int64(0), 0
	for _, r := range u.sending {
		if !r.held.cut {
			by[r.held.key] += r.held.bytes
			all += r.held.bytes
			n++
		}
	}
	for ; all > u.most && n > 1; n-- {
		var first *Run
		for _, r := range u.sending {
			if !r.held.cut && (first == nil || by[r.held.key] > by[first.held.key]) {
				first = r
			}
		}
		first.held.cut = true
		by[first.held.key] -= first.held.bytes
		all -= first.held.bytes
		for _, one := range first.held.users {
			if one.cut != nil {
				one.cut()
			}
		}
	}
}

// giveBack is for a report that nobody uses any more. The caller holds the lock.
func (u *unread) giveBack(r *Run) {
	if r.held.leave == nil {
		return
	}
	r.held.leave()
	r.held = holding{}
	u.sending = slices.DeleteFunc(u.sending, func(other *Run) bool { return other == r })
	u.begin()
}

// begin gives idle workers what waits and need not. The caller holds the lock.
func begin(s *Service) {
	for s.load.Running < s.opt.Workers {
		r := s.waiting.pop(s.unread.full)
		if r == nil {
			return
		}
		s.load.Running++
		go s.work(r)
	}
}

// told is about how much memory the report of r takes, or why it has none.
func (r *Run) told() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var policy *ViolationError
	switch {
	case r.report != nil:
		return reportBytes(r.report)
	case errors.As(r.err, &policy):
		return violationBytes(policy.Violations)
	}
	return 0
}

// reportBytes is about how much memory a report takes, and sending it.
func reportBytes(r *launcher.Report) int64 {
	n := 4096 + len(r.Stdout) + len(r.Stderr) + 2*len(r.Result) + 512*(len(r.Changes)+len(r.Children)+len(r.Tools))
	for _, list := range [][]string{r.Base, r.Effective, r.Except, r.Warnings} {
		for _, v := range list {
			n += 2 * (16 + len(v))
		}
	}
	return int64(n) + violationBytes(r.Violations)
}

func violationBytes(list []launcher.Violation) int64 {
	n := 0
	for _, v := range list {
		n += 2 * (64 + len(v.Message) + len(v.Capability) + len(v.Layer))
	}
	return int64(n)
}
