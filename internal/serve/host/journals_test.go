package host

import (
	"os"
	"path/filepath"
	"testing"

	"runloop.dev/rlp/internal/base/home"
)

// What lies in the folder of journals beside them is no journal that waits: neither
// the metric tells of it, nor is anything taken in for it.
func TestOnlyJournalsWait(t *testing.T) {
	h := testingHost(t, "")
	at, err := h.as(home.DefaultTenant, unsaid).Home()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(at.Journal(), 0o700); err != nil {
		t.Fatal(err)
	}
	lies := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(at.Journal(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lies(".args_key")
	lies(".group-3760445079")
	if n, ok := h.Backlog(); n != 0 || !ok {
		t.Errorf("%d journals wait, where there is none (%v)", n, ok)
	}
	if none, err := noJournals(at); !none || err != nil {
		t.Errorf("there is something to take in (%v)", err)
	}
	lies("01a2065c-0310-70e7-bfdf-dc0619441695") // control
	if n, ok := h.Backlog(); n != 1 || !ok {
		t.Errorf("%d journals wait, where there is one (%v)", n, ok)
	}
	if none, err := noJournals(at); none || err != nil {
		t.Errorf("there is nothing to take in (%v)", err)
	}
}
