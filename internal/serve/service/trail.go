package service

import (
	"slices"
	"sync"

	"runloop.dev/rlp/internal/record/audit"
)

// What a trail holds: little while nobody follows, so that the first who does
// finds short runs whole.
const (
	quietEntries, quietBytes       = 64, 32 << 10
	followedEntries, followedBytes = 1024, 512 << 10
)

// An entry is a record in a trail. Its line is made once, by the first follower.
type entry struct {
	rec  *audit.Record
	size int
	once sync.Once
	line []byte
	err  error
}

func (e *entry) record() (Record, error) {
	e.once.Do(func() { e.line, e.err = e.rec.AppendJSON(nil) })
	return Record{e.rec.RunSeq, e.line, e.rec.Kind(), e.rec}, e.err
}

// A trail is the newest records of one run, each behind the one before. What is no
// longer in it, or never was, the log has: who follows holds a number, and falls
// back to the log when the trail has gone on without it.
type trail struct {
	mu        sync.Mutex
	entries   []*entry
	bytes     int
	to        uint64 // number of the last record that is known
	followers int
	over      bool
	wake      chan struct{} // closed at the next change; nil: nobody waits
}

func newTrail() *trail { return &trail{} }

// add takes in a record. One that was there before changes nothing.
func (t *trail) add(rec *audit.Record) {
	if !rec.Kept {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if rec.RunSeq <= t.to {
		return
	}
	if rec.RunSeq != t.to+1 {
		t.entries, t.bytes = nil, 0
	}
	e := &entry{rec: rec, size: recordBytes(rec)}
	t.entries = append(t.entries, e)
	t.bytes += e.size
	t.to = rec.RunSeq
	t.trim()
	t.changed()
}

// trim forgets the oldest records.
func (t *trail) trim() {
	most, bytes := quietEntries, quietBytes
	if t.followers > 0 {
		most, bytes = followedEntries, followedBytes
	}
	for len(t.entries) > 0 && (len(t.entries) > most || t.bytes > bytes) {
		t.bytes -= t.entries[0].size
		t.entries[0] = nil
		t.entries = t.entries[1:]
	}
}

// changed wakes who waits. The caller holds the lock.
func (t *trail) changed() {
	if t.wake != nil {
		close(t.wake)
		t.wake = nil
	}
}

// end says that no record follows.
func (t *trail) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.followers == 0 {
		t.entries, t.bytes = nil, 0
	}
	t.changed()
}

// follow counts a follower; the function it returns counts it out again.
func (t *trail) follow() (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.followers++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.followers--
		if t.over && t.followers == 0 {
			t.entries, t.bytes = nil, 0
		}
		t.trim()
	}
}

// A stretch is what a trail has behind a number.
type stretch struct {
	entries []*entry
	missed  bool            // there is something, and the log has it
	over    bool            // nothing more comes
	wake    <-chan struct{} // when there is nothing yet
}

// after is what comes behind the record numbered n.
func (t *trail) after(n uint64) stretch {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.to + 1 - uint64(len(t.entries))
	switch {
	case n < t.to && n+1 < first:
		return stretch{missed: true, over: t.over}
	case n < t.to:
		at := int(n + 1 - first)
		return stretch{entries: slices.Clone(t.entries[at:min(at+batchOf, len(t.entries))])}
	}
	if t.wake == nil && !t.over {
		t.wake = make(chan struct{})
	}
	return stretch{over: t.over, wake: t.wake}
}

// recordBytes is about how much memory a record takes, with its line.
func recordBytes(r *audit.Record) int {
	n := 1024
	if r.Decision != nil {
		return n + 2*len(r.Decision.Target)
	}
	e := r.Event
	n += 2 * (len(e.Message) + len(e.ErrorSummary))
	for _, list := range [][]string{e.Base, e.Effective, e.Except, e.Violations} {
		for _, v := range list {
			n += 16 + 2*len(v)
		}
	}
	return n + 1024*len(e.Layers)
}
