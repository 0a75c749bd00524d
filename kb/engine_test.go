package kb

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/log"
	"runloop.dev/rlp/kb/values"
	"runloop.dev/rlp/kb/wire"
)

func testEngine(t testing.TB) *engine {
	t.Helper()
	return testEngineOf(t, Options{Home: filepath.Join(t.TempDir(), "home")})
}

func testEngineOf(t testing.TB, o Options) *engine {
	t.Helper()
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	e, err := openEngine(o, o.layout())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// fields are those of a message, by their numbers.
type fields map[int]any

// send has a request answered as that of another process is.
func send(ctx context.Context, e *engine, op wire.Opcode, q fields) (any, error) {
	body, err := e.codec.Marshal(q)
	if err != nil {
		return nil, err
	}
	return e.serve(ctx, &message{op, body})
}

// asked has q answered.
func asked[A any](ctx context.Context, e *engine, q wire.Request[*engine, A]) (*A, error) {
	if err := e.serves(q.Op()); err != nil {
		return nil, err
	}
	return wire.Answer(ctx, e, q)
}

func mustDo[A any](t testing.TB, e *engine, q wire.Request[*engine, A]) *A {
	t.Helper()
	r, err := asked(t.Context(), e, q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return r
}

// storeOf is the store that an engine is of.
func storeOf(t testing.TB, e *engine) *Store {
	t.Helper()
	o, err := Options{Home: t.TempDir()}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(o)
	s.backend = &owned{engine: e}
	return s
}

func put(t testing.TB, e *engine, key, value string) {
	t.Helper()
	if _, err := storeOf(t, e).View(Origin{}).Put(t.Context(), "notes", key, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

// Each kind of request has a number of its own, and somebody who answers it.
func TestEveryRequestIsHandled(t *testing.T) {
	seen := map[wire.Opcode]bool{}
	handled := func(op wire.Opcode) {
		if seen[op] {
			t.Errorf("two kinds of requests have the number %d", op)
		}
		seen[op] = true
	}
	for _, h := range handlers {
		handled(h.Op)
	}
	for _, h := range log.Handlers {
		handled(h.Op)
	}
	for _, h := range values.Handlers {
		handled(h.Op)
	}
	for op := wire.OpGet; op <= wire.OpOutcomes; op++ {
		if !seen[op] {
			t.Errorf("nobody answers requests of the number %d", op)
		}
	}
	if _, err := testEngine(t).serve(t.Context(), &message{Op: wire.OpOutcomes + 1}); !errors.Is(err, wire.ErrInvalid) {
		t.Errorf("a number that is nobody's: %v", err)
	}
}

// A disk that fills up while a store is open takes nothing more, which is told and
// kills no process, as touching a file that has no room there would: records stay in
// their journals, values are refused, and the end is not waited for. With room again
// all of it goes on.
func TestADiskThatFillsUp(t *testing.T) {
	o, err := Options{Home: filepath.Join(t.TempDir(), "home")}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	own := s.backend.(*owned)
	var full atomic.Bool
	noRoom := &db.NotFitError{What: o.layout().kb, Why: "the disk has 0 MiB left"}
	own.db.Room = func() error {
		if full.Load() {
			return noRoom
		}
		return nil
	}
	put := func(value string) error {
		_, err := s.View(Origin{}).Put(t.Context(), "notes", "a", []byte(value))
		return err
	}
	if err := put("1"); err != nil {
		t.Fatal("control:", err)
	}
	j, err := journal.Create(journal.Options{Dir: o.layout().journal, Head: audit.Head{
		RunID: "run1", Tenant: DefaultTenant,
		Agent: "a",
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	full.Store(true)
	if _, err := j.Decide(&audit.Decision{Keep: true, Deny: true}); err != nil {
		t.Fatal(err)
	}
	if err := put("2"); !errors.Is(err, wire.ErrUnavailable) {
		t.Errorf("a value on a full disk: %v", err)
	}
	if got, err := s.Ingest(t.Context()); !errors.As(err, new(*db.NotFitError)) || got.Records != 0 {
		t.Errorf("records on a full disk: %+v, %v", got, err)
	}
	if v, err := s.View(Origin{}).Get(t.Context(), "notes", "a"); err != nil || string(v.Bytes) != "1" {
		t.Errorf("it cannot be read: %v, %v", v, err)
	}
	full.Store(false)
	if got, err := s.Ingest(t.Context()); err != nil || got.Records == 0 {
		t.Errorf("with room again: %+v, %v", got, err)
	}
	full.Store(true)
	if err := s.Close(); err == nil || !errors.As(err, new(*db.NotFitError)) {
		t.Errorf("closed on a full disk: %v", err)
	}
	full.Store(false)
	again, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := again.View(Origin{}).Get(t.Context(), "notes", "a"); err != nil || string(v.Bytes) != "1" {
		t.Errorf("opened again: %v, %v", v, err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// A client says of an owner of another version that it is one.
func TestOwnerOfAnotherVersion(t *testing.T) {
	o, err := Options{Home: filepath.Join(t.TempDir(), "home"), Wait: 10 * time.Second}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(o)
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	claim, err := s.own(t.Context()) // so that nobody else owns it
	if err != nil || claim == nil {
		t.Fatal(claim, err)
	}
	defer claim.close()
	owner := claim.(*owned)
	if err := os.Remove(s.layout.socket); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", s.layout.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		w := wire.NewConn(c, owner.codec)
		w.Send(hello{magic, protocolVersion + 1, 4711})
		w.Receive(new(hello))
	}()
	if _, err := Open(t.Context(), o); !errors.Is(err, wire.ErrVersion) || !strings.Contains(err.Error(), "4711") {
		t.Errorf("opening: %v", err)
	}
}

// The name of a socket is a short digest of the tenant's: who finds another
// tenant's owner behind it is refused, and asks nothing.
//
//rlp:holds K4
func TestASocketOfAnotherTenantIsRefused(t *testing.T) {
	o, err := Options{Home: filepath.Join(t.TempDir(), "home"), Tenant: "acme"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for tenant, refused := range map[string]bool{"acme": false, "acme_co": true, "Acme": true} {
		other := o
		other.Tenant = tenant
		c, err := dial(t.Context(), o.layout().socket, agreementOf(other.values()))
		if errors.Is(err, wire.ErrUnavailable) != refused {
			t.Errorf("%s at the socket of acme: %v", tenant, err)
		}
		if c != nil {
			c.close()
		}
	}
}

// FuzzRequest: whatever a client sends is answered or refused, and the store
// goes on.
func FuzzRequest(f *testing.F) {
	o, err := Options{Home: filepath.Join(f.TempDir(), "home")}.withDefaults()
	if err != nil {
		f.Fatal(err)
	}
	e, err := openEngine(o, o.layout())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { e.close() })
	for op, q := range map[wire.Opcode]fields{
		wire.OpGet:    {1: "notes", 2: "a"},
		wire.OpChange: {1: []byte("0123456789abcdef"), 2: "notes", 3: "a", 5: []byte("v"), 8: fields{}},
		wire.OpList:   {1: "notes"},
		wire.OpSeek:   {1: fields{6: 3}},
		wire.OpPage:   {1: fields{}, 2: 1, 3: 9},
		wire.OpIngest: {},
		wire.OpSearch: {1: "notes", 2: "a text", 3: 3},
		wire.OpPutAll: {2: "notes", 3: []fields{{1: "b", 2: []byte("text"), 3: fields{}}}},
		wire.OpWhy:    {1: "notes", 2: "a"},
		wire.OpVerify: {1: []byte("k")},
		wire.OpBackup: {},
	} {
		if _, err := send(f.Context(), e, op, q); errors.Is(err, wire.ErrInvalid) {
			f.Fatal(op, err) // it says nothing to whom it is for
		}
		p, err := e.codec.Marshal(q)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(op), p)
	}
	s := &server{engine: e}
	f.Fuzz(func(t *testing.T, op uint8, p []byte) {
		q := &message{wire.Opcode(op), p}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r, err := e.serve(ctx, q)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%+v is not answered", q)
		}
		if _, err := e.codec.Marshal(s.reply(r, err)); err != nil {
			t.Fatal(err)
		}
	})
}
