package program_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/hostcalls/connect"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/egress"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/program"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == lane.ConfineName {
		os.Exit(lane.Confined())
	}
	if status, done := guest.BeCompiler(os.Args, os.Stdin, os.Stdout); done {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// A world is a run under a policy, and servers outside.
type world struct {
	network program.Network
	log     *audit.Memory
	lock    sync.Mutex
	now     atomic.Int64 // seconds
	budget  *budget.Budget
	lookups atomic.Int64
	folders []lane.Folder // that the program sees
}

func newWorld(t *testing.T, base, server string) *world {
	t.Helper()
	p, findings := policy.ParseBase("policy.caps", []byte("schema = \"0.2\"\n"+base), policy.Options{})
	if policy.HasErrors(findings) {
		t.Fatal(findings)
	}
	set, err := caps.Base(p.Entries, p.Limits)
	if err != nil {
		t.Fatal(err)
	}
	held := set
	if len(p.Leases) > 0 {
		if held, _, err = set.Narrow(&caps.Layer{Name: "policy.caps", Leases: p.Leases}); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{log: audit.NewMemory(), budget: budget.New(p.Limits, nil)}
	w.now.Store(1_800_000_000)
	now := func() time.Time { return time.Unix(w.now.Load(), 0) }
	g, err := gate.New(held, w.log, gate.Options{
		KeepAllowed: true, KeepDenied: true, MaxCalls: -1, Now: func() int64 { return now().UnixMilli() },
	})
	if err != nil {
		t.Fatal(err)
	}
	pol, err := connect.New(connect.Config{Gate: g, Lock: &w.lock, Budget: w.budget, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	w.network = program.Network{Policy: pol, Now: time.Now, Base: set, Outside: egress.New(egress.Config{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			w.lookups.Add(1)
			return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, server)
		},
	})}
	return w
}

// run runs a script in the lane ns, in the world's network.
func (w *world) run(t *testing.T, script string) string {
	t.Helper()
	return w.runIn(t, newLane(t), script)
}

// newLane is a lane of the kind ns.
func newLane(t *testing.T) lane.Lane {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l, err := lane.Open(t.Context(), "ns", lane.Config{
		Work: filepath.Join(dir, "agent", "run"), ID: fmt.Sprintf("test-%d", os.Getpid()),
		Self: []string{self, "rlp", lane.ConfineName},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// runIn is run in a lane that there is.
func (w *world) runIn(t *testing.T, l lane.Lane, script string) string {
	t.Helper()
	sh, err := lane.Resolve("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Run(t.Context(), &lane.Command{
		Program: sh.File, Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
		Timeout: 2 * time.Minute, MaxOutput: 4 << 20, Network: w.network.Own(), Folders: w.folders,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Stdout.Data) + string(r.Stderr.Data)
}

func (w *world) decided() (list []string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, d := range w.log.Decisions {
		list = append(list, strings.Join([]string{d.Cap, d.Target, d.Reason}, " "))
	}
	return list
}

// A program in a lane reaches what its policy grants and nothing else; each decision
// is in the log before, and what came of it after.
func TestAProgramUnderAPolicy(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, "hello "+r.Host)
	}))
	defer s.Close()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "[capabilities]\nnet = { hosts = [\"api.test\", \"127.0.0.1:"+port+"\"], allow_http = true, "+
		"tcp = [\"db.test:5432\"] }\n", s.Listener.Addr().String())
	got := w.run(t, `for u in http://api.test/ http://127.0.0.1:`+port+`/ http://db.test:5432/ http://other.test/ \
http://93.184.215.14/ https://api.test/; do curl -s --max-time 20 $u || printf refused; echo; done`)
	if want := "hello api.test\nhello 127.0.0.1:" + port + "\nhello db.test:5432\nrefused\nrefused\nrefused\n"; got != want {
		t.Errorf("%s", got)
	}
	for _, want := range []string{
		"net.connect http://api.test:80 granted", "net.connect http://127.0.0.1:" + port + " granted",
		"net.connect tcp://db.test:5432 granted", "net.connect https://other.test:443 host_not_permitted",
		"net.connect http://93.184.215.14:80 host_not_permitted", "net.connect https://api.test:443 granted",
	} {
		if !slices.Contains(w.decided(), want) {
			t.Errorf("not recorded: %s; but %q", want, w.decided())
		}
	}
	if n := w.lookups.Load(); n != 3 { // api.test by each scheme, db.test
		t.Errorf("%d names were looked up", n)
	}
	if w.budget.Used(caps.NetBytes) == 0 {
		t.Error("no bytes were counted")
	}
	// Nobody trusts these hosts, which is recorded before what came of the first connection.
	if e := w.log.Events; len(e) < 5 || e[0].Label != "http:http://api.test:80" || e[1].Verb != "connect" ||
		e[1].Bytes == 0 {
		t.Errorf("%+v", e)
	}
}

// What is granted no more is cut while it is in use.
func TestWhatIsTakenAwayIsCut(t *testing.T) {
	begun := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, "begun ")
		_ = http.NewResponseController(rw).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
	}))
	defer s.Close()
	w := newWorld(t, "[capabilities]\nnet = { tcp = [\"api.test:80\"] }\n[leases]\n"+
		"\"network:tcp:api.test:80\" = { expires = 2027-01-15T08:00:10Z }\n", s.Listener.Addr().String())
	go func() {
		<-begun
		w.now.Add(60)
	}()
	got := w.run(t, "curl -sN http://api.test/; echo $?; curl -s http://api.test/; echo $?")
	if !strings.HasPrefix(got, "begun ") || strings.Contains(got, "0\n") {
		t.Errorf("%s", got)
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if e := w.log.Events; len(e) == 0 || e[len(e)-1].ErrorSummary != "what allowed it was taken away" {
		t.Errorf("%+v", e)
	}
}
