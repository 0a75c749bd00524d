package log

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/logtest"
)

// states are the stored states of journals, by run.
func (a *adversary) states() map[string][]byte {
	all := map[string][]byte{}
	for _, p := range a.all(SpaceState) {
		all[string(p.key[1:])] = p.value
	}
	return all
}

// Every byte of what is stored of how far a journal was taken in is seen to be
// another one, by a verification of the log and by one of the run; so is the state
// of another run, and none. Control: what was stored.
func TestStatesOfJournalsAreChecked(t *testing.T) {
	o, _ := threeRuns(t)
	j := logtest.Begin(t, o.home, "open", 3) // one that goes on
	defer j.Close()
	s := openLog(t, o)
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	attack(t, o, func(a *adversary) {
		for run, p := range a.states() {
			if _, err := journal.CheckTaken(a.codec, run, p); err != nil {
				t.Fatalf("control: %s: %v", run, err)
			}
			for i := range p {
				for bit := range 8 {
					other := slices.Clone(p)
					other[i] ^= 1 << bit
					if _, err := journal.CheckTaken(a.codec, run, other); err == nil {
						t.Errorf("%s: bit %d of byte %d was flipped", run, bit, i)
					}
				}
			}
			if _, err := journal.CheckTaken(a.codec, run+"x", p); err == nil {
				t.Errorf("the state of %s is taken for another's", run)
			}
		}
	})
}

// The same in a store, where a table has sums of its own that are made anew.
func TestChangedStatesAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		change func(txn *badger.Txn, p []byte) error
		want   string
	}{
		"control": {func(*badger.Txn, []byte) error { return nil }, ""},
		"a byte of the place in the file": {func(txn *badger.Txn, p []byte) error {
			p[3] ^= 1
			return txn.Set(keyState("run22"), p)
		}, "run run22 was taken in cannot be read"},
		"gone": {
			func(txn *badger.Txn, _ []byte) error { return txn.Delete(keyState("run22")) },
			"run run22, and not how far",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := threeRuns(t)
			attack(t, o, func(a *adversary) {
				p := a.states()["run22"]
				if err := a.db.Update(func(txn *badger.Txn) error { return c.change(txn, p) }); err != nil {
					t.Fatal(err)
				}
			})
			s := openLog(t, o)
			for _, run := range []string{"", "run22"} {
				_, err := s.VerifyLog(t.Context(), Check{Run: run})
				var fault *Error
				if (err != nil) != (c.want != "") || err != nil && (!errors.As(err, &fault) || fault.Fault != FaultRun) ||
					run == "" && c.want != "" && !strings.Contains(err.Error(), c.want) {
					t.Errorf("of %q: %v", run, err)
				}
			}
		})
	}
}

// A state that has no sum, as stores of before have them, is right by its form.
func TestStatesWithoutASum(t *testing.T) {
	o := newPlace(t)
	logtest.Record(t, o.home, "run1", 3)
	s := openLog(t, o)
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	attack(t, o, func(a *adversary) {
		state, err := journal.CheckTaken(a.codec, "run1", a.states()["run1"])
		if err != nil || state.Sum == nil {
			t.Fatalf("%v %v", state, err)
		}
		state.Sum = nil
		p, err := a.codec.Marshal(state)
		if err == nil {
			err = a.db.Update(func(txn *badger.Txn) error { return txn.Set(keyState("run1"), p) })
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	if _, err := openLog(t, o).VerifyLog(t.Context(), Check{}); err != nil {
		t.Error(err)
	}
}

// That the newest checkpoint was removed stays told, whatever signs the log next: a
// run that is taken in, or whoever asks for a checkpoint. Control: it was not removed.
func TestARemovedCheckpointStaysTold(t *testing.T) {
	for name, c := range map[string]struct {
		removed []string
		next    func(t *testing.T, o place, s *testLog)
		found   bool
	}{
		"control":      {nil, taken, false},
		"the next run": {[]string{string(keyCheckpoint(93))}, taken, true},
		"all, and the next": {
			[]string{string(keyCheckpoint(41)), string(keyCheckpoint(72)), string(keyCheckpoint(93))},
			taken, true,
		},
		"an older one":         {[]string{string(keyCheckpoint(41))}, taken, false}, // the newest one is of all records
		"asked for":            {[]string{string(keyCheckpoint(93))}, askedFor, true},
		"asked for, untouched": {nil, askedFor, false},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := threeRuns(t)
			attack(t, o, func(a *adversary) {
				for _, k := range c.removed {
					a.drop([]byte(k))
				}
			})
			s := openLog(t, o)
			var fault *Error
			if _, err := s.VerifyLog(t.Context(), Check{Open: newTestKey("ours").open}); c.found != (errors.As(err, &fault) &&
				fault.Fault == FaultUnsealed) {
				t.Errorf("before: %v", err)
			}
			c.next(t, o, s)
			for range 2 {
				r, err := s.VerifyLog(t.Context(), Check{Open: newTestKey("ours").open})
				if err != nil || (r.Found == 1) != c.found || c.found && !strings.Contains(r.Findings[0].Message,
					"ended a run, and the checkpoint") {
					t.Errorf("after: %v, %+v", err, r.Findings)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openLog(t, o)
			}
		})
	}
}

func taken(t *testing.T, o place, s *testLog) {
	t.Helper()
	logtest.Record(t, o.home, "run4444", 3)
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func askedFor(t *testing.T, _ place, s *testLog) {
	t.Helper()
	if _, err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
}
