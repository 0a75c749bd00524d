package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/host/hosttest"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
)

// What is told as unsealed is what no checkpoint covers: all of a log that nobody
// could sign, what came behind the newest checkpoint otherwise, however far back
// that is.
func TestUnsealedRecordsAreThoseBehindTheNewestCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	_, homeErr := home.Open(dir, kb.DefaultTenant)
	at, err := kb.JournalDir(dir, "")
	if err := errors.Join(homeErr, err); err != nil {
		t.Fatal(err)
	}
	signs := false
	s, err := kb.Open(t.Context(), kb.Options{Home: dir, Seal: func(size uint64, _ [32]byte) ([]byte, error) {
		if !signs {
			return nil, errors.New("the key cannot be read")
		}
		return fmt.Append(nil, size), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runs := 0
	in := func(signed bool) {
		t.Helper()
		signs = signed
		runs++
		j, err := journal.Create(journal.Options{Dir: at, Head: audit.Head{
			RunID: fmt.Sprintf("0198d2c4-7f1e-7000-8000-%012x", runs), TraceID: "0123456789abcdef0123456789abcdef",
			Tenant: kb.DefaultTenant, Agent: "writer",
		}})
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(j.Event(&audit.Event{Kind: audit.KindRunStart}), j.Event(&audit.Event{
			Kind:    audit.KindRunComplete,
			Outcome: "ok",
		}), j.Close())
		if _, inErr := s.Ingest(t.Context()); errors.Join(err, inErr) != nil {
			t.Fatal(err, inErr)
		}
	}
	want := func(n uint64) {
		t.Helper()
		if got, err := unsealed(t.Context(), s); err != nil || got != n {
			t.Errorf("%d records are unsealed, want %d: %v", got, n, err)
		}
	}
	want(0)
	in(false)
	want(2)
	in(true)
	want(0)
	for n := range uint64(5) {
		in(false)
		want(2 * (n + 1))
	}
	signs = true
	if _, err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(0)
	in(false)
	want(2)
}

// The service knows it of its own log, which each run that ends signs.
func TestTheServiceKnowsWhatIsUnsealed(t *testing.T) {
	h := testingHost(t, "")
	hosttest.Install(t, h.home, "plain", "", importing(t))
	if _, err := h.do(t, &service.Request{Door: service.HTTP, Agent: "plain"}); err != nil {
		t.Fatal(err)
	}
	log, err := h.Store(t.Context(), home.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Ingest(t.Context()); err != nil { // it is behind the run otherwise
		t.Fatal(err)
	}
	if n, ok := h.LogSize(); !ok || n == 0 {
		t.Fatalf("control: %d records: %v", n, ok)
	}
	if n, ok := h.LogUnsealed(); !ok || n != 0 {
		t.Errorf("%d records are unsealed: %v", n, ok)
	}
}

// Who may not name paths is told so before any of them is looked up: what is
// another tenant's is not told from what is nobody's.
func TestParamsAreRefusedBeforeTheyAreLookedUp(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	hosttest.Install(t, h.home, "plain", "", importing(t))
	tenants := filepath.Join(h.home, "tenants", "acme")
	if err := os.MkdirAll(tenants, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{t.TempDir(), tenants, filepath.Join(h.home, "config.toml"), "relative", "/nowhere"} {
		q := &service.Request{Door: service.HTTP, Agent: "plain", Params: map[string]string{"notes": path}}
		h.who.May = service.Launch | service.Read
		if err := h.Check(t.Context(), h.who, q); !errors.Is(err, service.ErrForbidden) {
			t.Errorf("%s: %v", path, err)
		}
	}
	var fields service.FieldErrors
	h.who.May |= service.Operate
	if err := h.Check(t.Context(), h.who, &service.Request{
		Door: service.HTTP, Agent: "plain",
		Params: map[string]string{"notes": tenants},
	}); !errors.As(err, &fields) {
		t.Errorf("control: the operator is told %v", err)
	}
}

// A service that can begin no run's record is not ready, and is again once it can.
func TestNoJournalIsNotReady(t *testing.T) {
	h := testingHost(t, "")
	hosttest.Install(t, h.home, "plain", "", importing(t))
	if _, err := h.do(t, &service.Request{Door: service.HTTP, Agent: "plain"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Ready(t.Context()); err != nil {
		t.Fatalf("control: %v", err)
	}
	journals := filepath.Join(h.home, "journal")
	if left, err := filepath.Glob(filepath.Join(journals, ".new-*")); err != nil || left != nil {
		t.Fatalf("looking left %v: %v", left, err)
	}
	key := filepath.Join(journals, ".args_key") // without which no run's record begins
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := h.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "no journal can be made") {
		t.Errorf("it can record no run, and is ready: %v", err)
	}
	h.who.May = service.Launch
	var away *service.UnavailableError
	_, err := h.do(t, &service.Request{Door: service.HTTP, Agent: "plain"})
	if !errors.As(err, &away) || !away.Unrecorded || !strings.HasPrefix(err.Error(),
		"the service cannot record the run;") {
		t.Errorf("a launch that cannot be recorded: %v", err)
	}
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Ready(t.Context()); err != nil {
		t.Errorf("it is not ready again: %v", err)
	}
}

// A service whose log has no room takes no runs, and says so.
func TestNoRoomForTheLogIsNotReady(t *testing.T) {
	h := testingHost(t, "")
	if err := h.Ready(t.Context()); err != nil {
		t.Fatalf("control: %v", err)
	}
	h.room = func(*kb.Store) error { return errors.New("the disk has 0 MiB left") }
	if err := h.Ready(t.Context()); err == nil || !strings.Contains(err.Error(),
		"the audit log: the disk has 0 MiB left") {
		t.Errorf("without room it is ready: %v", err)
	}
}
