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
	// maxTries bounds how many addresses and tokens are remembered, and maxKnown how
	// many of them are of tokens that came in.
	maxTries = 8192
	maxKnown = maxTries / 2
)

// tries are failed attempts, by where they came from and by the token that they
// named. What is judged under its lock is judged one at a time, so that as many
// attempts at once are no way around the wait.
//
// When there is no room left, who failed a few times is forgotten first, then who
// need not wait any more. Who waits is not forgotten, nor who came in: whoever
// comes while nobody can be forgotten shares one wait with all who do.
type tries struct {
	mu   sync.Mutex
	all  map[string]*try
	few  *list.List // of *try, the last failure in front
	slow *list.List // the same, of those that have been made to wait
	in   *list.List // the same, of tokens that came in
	rest *try       // all that there is no room for

	failed, held uint64
}

// A try is what one address, one token, or a token from an address did.
type try struct {
	key    string
	failed int
	until  time.Time // before it nothing is judged
	last   time.Time
	known  bool // it came in once: a token from this address

	list *list.List // that it is in
	at   *list.Element
}

func newTries() *tries {
	return &tries{all: make(map[string]*try), few: list.New(), slow: list.New(), in: list.New(), rest: &try{}}
}

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
			t.note(pair, now, func(e *try) { e.known = true })
		}
		return true, 0
	}
	t.failed++
	for _, key := range counts {
		t.note(key, now, func(e *try) {
			if e.failed++; e.failed >= freeTries {
				e.until = now.Add(min(time.Second<<min(e.failed-freeTries, 10), maxWait))
			}
		})
	}
	return false, 0
}

func (t *tries) isKnown(pair string, now time.Time) bool {
	e := t.get(pair, now)
	return e != nil && e.known
}

// get is what is remembered of a key; nil: nothing.
func (t *tries) get(key string, now time.Time) *try {
	e := t.all[key]
	switch {
	case e == nil && len(t.all) < maxTries:
		return nil
	case e == nil && t.forgettable(now) == nil:
		e = t.rest
	case e == nil:
		return nil
	}
	if now.Sub(e.last) <= forgetAfter {
		return e
	}
	if e == t.rest {
		*e = try{}
	} else {
		t.forget(e)
	}
	return nil
}

// note changes what is remembered of a key, as of now.
func (t *tries) note(key string, now time.Time, change func(*try)) {
	e := t.get(key, now)
	if e == nil {
		e = t.made(key, now)
	}
	if e == t.rest {
		change(e)
		e.known, e.last = false, now // it is many, and none of them came in
		return
	}
	change(e)
	e.last = now
	into := t.few
	switch {
	case e.known:
		into = t.in
	case e.failed >= freeTries:
		into = t.slow
	}
	if e.list != nil {
		e.list.Remove(e.at)
	}
	e.list, e.at = into, into.PushFront(e)
	if t.in.Len() > maxKnown {
		t.forget(t.in.Back().Value.(*try))
	}
}

// made is a key of which nothing was remembered, if there is room for it.
func (t *tries) made(key string, now time.Time) *try {
	if len(t.all) >= maxTries {
		old := t.forgettable(now)
		if old == nil {
			return t.rest
		}
		t.forget(old)
	}
	e := &try{key: key}
	t.all[key] = e
	return e
}

// forgettable is who is forgotten first; nil: nobody may be.
func (t *tries) forgettable(now time.Time) *try {
	if e := t.few.Back(); e != nil {
		return e.Value.(*try)
	}
	if e := t.slow.Back(); e != nil && !now.Before(e.Value.(*try).until) {
		return e.Value.(*try)
	}
	return nil
}

func (t *tries) forget(e *try) {
	delete(t.all, e.key)
	if e.list != nil {
		e.list.Remove(e.at)
	}
}

// counts are how many attempts failed, and how many were not judged.
func (t *tries) counts() (failed, held uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed, t.held
}
