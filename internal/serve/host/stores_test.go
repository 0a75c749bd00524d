package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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
	h.ingest(t)
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
	if err := h.unready(t); err != nil {
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
	if err := h.unready(t); err == nil || !strings.Contains(err.Error(), "no journal can be made") {
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
	if err := h.unready(t); err != nil {
		t.Errorf("it is not ready again: %v", err)
	}
}

// A service whose log has no room takes no runs, and says so.
func TestNoRoomForTheLogIsNotReady(t *testing.T) {
	h := testingHost(t, "")
	if err := h.unready(t); err != nil {
		t.Fatalf("control: %v", err)
	}
	h.room = func(*kb.Store) error { return errors.New("the disk has 0 MiB left") }
	if err := h.unready(t); err == nil || !strings.Contains(err.Error(),
		"the audit log: the disk has 0 MiB left") {
		t.Errorf("without room it is ready: %v", err)
	}
}

// unready is why runs of a tenant cannot be recorded.
func (h *testHost) unready(t *testing.T) error {
	t.Helper()
	for _, s := range h.Ready(t.Context()) {
		if s.Reason != "" {
			return fmt.Errorf("%s: %s", s.Tenant, s.Reason)
		}
	}
	return nil
}

// Each tenant that was asked for counts, by a reader of its log or by a request to
// launch alone: one whose log cannot be opened, or has no
// journals, is told beside those that can record, with what waits of it; and is
// ready again once it can.
func TestEachTenantIsTried(t *testing.T) {
	for name, ask := range map[string]func(t *testing.T, h *testHost, tenant string, opens bool){
		"read": func(t *testing.T, h *testHost, tenant string, opens bool) {
			if err := os.MkdirAll(filepath.Join(h.home, "tenants", tenant), 0o700); err != nil { // reading makes none
				t.Fatal(err)
			}
			if _, err := h.Log(t.Context(), &service.Caller{Tenant: tenant, May: service.Read}); (err == nil) != opens {
				t.Fatalf("%s: %v", tenant, err)
			}
		},
		"launch": func(t *testing.T, h *testHost, tenant string, _ bool) {
			hosttest.Install(t, filepath.Join(h.home, "tenants", tenant), "plain", "", importing(t))
			who := &service.Caller{Tenant: tenant, May: service.Launch}
			if err := h.Check(t.Context(), who, &service.Request{Door: service.HTTP, Agent: "plain"}); err != nil {
				t.Fatalf("%s: %v", tenant, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { eachTenantIsTried(t, ask) })
	}
}

func eachTenantIsTried(t *testing.T, ask func(t *testing.T, h *testHost, tenant string, opens bool)) {
	h := testingHost(t, "")
	damaged := filepath.Join(h.home, "tenants", "beta", "kb")
	if err := os.MkdirAll(damaged, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(damaged, "MANIFEST"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.unready(t); err != nil {
		t.Fatalf("control: a tenant that nobody asked for: %v", err)
	}
	for tenant, opens := range map[string]bool{"acme": true, "beta": false} {
		ask(t, h, tenant, opens)
	}
	key := filepath.Join(h.home, "tenants", "acme", "journal", ".args_key")
	states := func() (told string) {
		for _, s := range h.Ready(t.Context()) {
			told += fmt.Sprintf("%s %t %d\n", s.Tenant, s.Reason == "", s.Waiting)
		}
		return told
	}
	if told := states(); told != "default true 0\nacme true 0\nbeta false 0\n" {
		t.Errorf("%s", told)
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if told := states(); told != "default true 0\nacme false 0\nbeta false 0\n" {
		t.Errorf("%s", told)
	}
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	if told := states(); told != "default true 0\nacme true 0\nbeta false 0\n" {
		t.Errorf("%s", told)
	}
}

// However many tenants there are, an answer tries a few, and all of them in turn.
func TestFewTenantsAreTriedAtATime(t *testing.T) {
	h := testingHost(t, "")
	all := map[string]bool{}
	for i := range 2 * mostTried {
		tenant := fmt.Sprint("t", i)
		h.tenants[tenant], all[tenant] = false, true
	}
	tried := 0
	h.room = func(*kb.Store) error { tried++; return nil }
	for range 3 {
		before := tried
		h.Ready(t.Context())
		if n := tried - before; n != mostTried {
			t.Errorf("%d were tried", n)
		}
	}
	for tenant := range all {
		if h.ready.tried[tenant].number == 0 {
			t.Errorf("%s was not tried", tenant)
		}
	}
}

// Who asks at once shares what was found after they came.
func TestWhoAsksAtOnceSharesATrial(t *testing.T) {
	h := testingHost(t, "")
	const many = 20
	tries, began, goOn := atomic.Int64{}, make(chan struct{}), make(chan struct{})
	h.room = func(*kb.Store) error {
		if tries.Add(1) == 1 {
			close(began)
			<-goOn
		}
		return nil
	}
	var asking sync.WaitGroup
	asking.Go(func() { h.Ready(t.Context()) })
	<-began
	waits := make(chan struct{}, many)
	for range many {
		asking.Go(func() {
			waits <- struct{}{}
			h.Ready(t.Context())
		})
	}
	for range many {
		<-waits
	}
	close(goOn)
	asking.Wait()
	if n := tries.Load(); n > many/2 {
		t.Errorf("%d asked at once, and it was tried %d times", many, n)
	}
}
