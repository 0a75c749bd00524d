package access

import (
	"container/list"
	"sync"
	"time"
)

const (
	// freeTries is how many attempts may fail before whoever makes them waits.
	freeTries = 5
	// maxWait is the longest wait between two attempts.
	maxWait = time.Minute
	// forgetAfter is how long after its last failure somebody is as new.
	forgetAfter = 15 * time.Minute
	// maxTries bounds how many addresses and tokens are remembered; who failed
	// longest ago is forgotten first.
	maxTries = 8192
)

// tries are failed attempts, by where they came from and by the token that they
// named. What is judged under its lock is judged one at a time, so that as many
// attempts at once are no way around the wait.
type tries struct {
	mu     sync.Mutex
	all    map[string]*list.Element
	recent *list.List // of *try, the last failure in front

	failed, held uint64
}

// A try is what one address, one token, or a token from an address did.
type try struct {
	key    string
	failed int
	until  time.Time // before it nothing is judged
	last   time.Time
	known  bool // it came in once: a token from this address
}

func newTries() *tries { return &tries{all: make(map[string]*list.Element), recent: list.New()} }

// attempt judges once, unless whoever tries must wait first. from is an address;
// id is the token that is tried, or "". A token from an address from which it
// came in before waits for what was tried with it from there, and for nothing
// else: neither for guesses at it elsewhere nor for those that others make from
// an address that many share, as behind a proxy or on a host with containers.
func (t *tries) attempt(now time.Time, from, id string, judge func() bool) (ok bool, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pair := "pair " + id + " " + from
	waits := []string{"from " + from}
	counts := waits
	switch {
	case id == "":
	case t.isKnown(pair, now):
		waits, counts = []string{pair}, []string{pair, "from " + from}
	default:
		waits = append(waits, "token "+id)
		counts = waits
	}
	for _, key := range waits {
		if e := t.get(key, now); e != nil {
			wait = max(wait, e.until.Sub(now))
		}
	}
	if wait > 0 {
		t.held++
		return false, wait
	}
	if judge() {
		if id != "" {
			t.put(pair, now).known = true
		}
		return true, 0
	}
	t.failed++
	for _, key := range counts {
		e := t.put(key, now)
		if e.failed++; e.failed >= freeTries {
			e.until = now.Add(min(time.Second<<min(e.failed-freeTries, 10), maxWait))
		}
	}
	return false, 0
}

func (t *tries) isKnown(pair string, now time.Time) bool {
	e := t.get(pair, now)
	return e != nil && e.known
}

// get is what is remembered of a key.
func (t *tries) get(key string, now time.Time) *try {
	el := t.all[key]
	if el == nil {
		return nil
	}
	e := el.Value.(*try)
	if now.Sub(e.last) > forgetAfter {
		t.recent.Remove(el)
		delete(t.all, key)
		return nil
	}
	return e
}

// put is the same, moved to the front, made if it is not there.
func (t *tries) put(key string, now time.Time) *try {
	e := t.get(key, now)
	if e == nil {
		e = &try{key: key}
		t.all[key] = t.recent.PushFront(e)
		if t.recent.Len() > maxTries {
			oldest := t.recent.Back()
			delete(t.all, oldest.Value.(*try).key)
			t.recent.Remove(oldest)
		}
	} else {
		t.recent.MoveToFront(t.all[key])
	}
	e.last = now
	return e
}

// counts are how many attempts failed, and how many were not judged.
func (t *tries) counts() (failed, held uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed, t.held
}
