package kb

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/journal"
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

// sent is a request of whatever kind.
type sent interface{ Op() wire.Opcode }

// send has q answered as that of another process is.
func send(ctx context.Context, e *engine, q sent) (any, error) {
	body, err := e.codec.Marshal(q)
	if err != nil {
		return nil, err
	}
	return e.serve(ctx, &message{q.Op(), body})
}

// asked has q answered by the part of e that it is for.
func asked[P, A any](ctx context.Context, e *engine, q wire.Request[P, A]) (*A, error) {
	if err := e.serves(q.Op()); err != nil {
		return nil, err
	}
	for _, part := range []any{e, e.log, e.values} {
		if p, ok := part.(P); ok {
			return wire.Answer(ctx, p, q)
		}
	}
	return nil, errors.New("no part of the store answers it")
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
	for _, h := range logHandlers {
		handled(h.Op)
	}
	for _, h := range valueHandlers {
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

// A change that is asked for again under its ID is answered as before and not
// made again, whatever has happened in between.
func TestChangeIsAppliedOnce(t *testing.T) {
	e := testEngine(t)
	ask := func(q *changeRequest) (*changeAnswer, error) {
		q.Domain, q.Key = "notes", "a"
		return asked(t.Context(), e, q)
	}
	id := func(b byte) []byte { return slices.Repeat([]byte{b}, 16) }
	put := &changeRequest{ID: id(1), Value: []byte("1")}
	first, err := ask(put)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ask(&changeRequest{ID: id(2), Value: []byte("2")})
	if err != nil || other.Revision == first.Revision {
		t.Fatal(other, err)
	}
	again, err := ask(put)
	if err != nil || again.Revision != first.Revision {
		t.Errorf("asked again: %+v %v", again, err)
	}
	if got, err := asked(t.Context(), e, &getRequest{Domain: "notes", Key: "a"}); err != nil || string(got.Value) != "2" {
		t.Errorf("the change was made again: %+v %v", got, err)
	}
	del := &changeRequest{ID: id(3), Delete: true}
	for range 2 {
		if _, err := ask(del); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	many := &putAllRequest{ID: id(5), Domain: "notes", Items: []Item{{Key: "m", Value: []byte("1")}, {Key: "n"}}}
	one, err := asked(t.Context(), e, many)
	if err != nil || len(one.Revisions) != 2 {
		t.Fatal(one, err)
	}
	if two, err := asked(t.Context(), e, many); err != nil || !slices.Equal(two.Revisions, one.Revisions) {
		t.Errorf("many asked for again: %+v %v", two, err)
	}
	swap := &changeRequest{ID: id(4), Compare: true, Value: []byte("3")}
	for range 2 {
		if _, err := ask(swap); err != nil {
			t.Errorf("swap: %v", err)
		}
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
	j, err := journal.Create(journal.Options{Dir: own.log.opt.Journal, Head: audit.Head{
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

// A record that is gone from the log, at whatever place, is an error that says which.
func TestMissingRecord(t *testing.T) {
	for _, gone := range []uint64{1, 5, 10} {
		e := testEngine(t)
		j, err := journal.Create(journal.Options{Dir: e.log.opt.Journal, Head: audit.Head{
			RunID: "run1", Tenant: DefaultTenant,
			Agent: "a",
		}})
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := j.Decide(&audit.Decision{Keep: true, Deny: true}); err != nil {
				t.Fatal(err)
			}
		}
		defer j.Close()
		if _, err := asked(t.Context(), e, &ingestRequest{}); err != nil {
			t.Fatal(err)
		}
		queries := []sent{
			&pageRequest{From: 1, UpTo: 10},
			&pageRequest{From: 1, UpTo: 10, Filter: Filter{Run: "run1"}},
			&pageRequest{From: 1, UpTo: 10, Filter: Filter{Agent: "a"}},
			&seekRequest{Filter: Filter{Limit: 10, Decision: "deny"}},
		}
		for _, q := range queries {
			if _, err := send(t.Context(), e, q); err != nil { // the control
				t.Fatal(err)
			}
		}
		if err := e.db.Update(func(txn *badger.Txn) error { return txn.Delete(keyRecord(gone)) }); err != nil {
			t.Fatal(err)
		}
		for _, q := range queries {
			if _, err := send(t.Context(), e, q); !errors.Is(err, wire.ErrDamaged) {
				t.Errorf("record %d is gone, %+v: %v", gone, q, err)
			}
		}
	}
}

// A journal that carries on after a gap in its numbers is refused.
func TestGapIsRefused(t *testing.T) {
	e := testEngine(t)
	j, err := journal.Create(journal.Options{Dir: e.log.opt.Journal, Head: audit.Head{
		RunID: "run1", Tenant: DefaultTenant,
		Agent: "a",
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := j.Decide(&audit.Decision{Keep: true}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := asked(t.Context(), e, &ingestRequest{}); err != nil {
		t.Fatal(err)
	}
	s, err := e.log.journalState("run1")
	if err != nil || s.State.RunSeq != 4 {
		t.Fatal(s, err)
	}
	s.State.RunSeq = 2 // as if two records had been lost on the way in
	b := &intake{Log: e.log, ctx: t.Context(), run: "run1"}
	if err := b.flush(s); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Decide(&audit.Decision{Keep: true, Target: "after"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := asked(t.Context(), e, &ingestRequest{})
	if err != nil || len(r.Damaged) != 1 || !strings.Contains(r.Damaged[0], "record 5 is where record 3 belongs") {
		t.Fatalf("%+v %v", r, err)
	}
}

// No two keys of the database are one, whatever names hold.
func TestKeysAreDistinct(t *testing.T) {
	seen := map[string]string{}
	names := []string{"", "a", "aa", "a\x00", "\x00a", "\x00\x01a", "run", "r\x00\x00\x00\x00\x00\x00\x00\x01"}
	add := func(k []byte, what string) {
		if before, ok := seen[string(k)]; ok {
			t.Errorf("%s and %s have one key", before, what)
		}
		seen[string(k)] = what
	}
	for _, k := range [][]byte{keyRev(), keySeq(), keySchema(), keyIndex(), keyRestore()} {
		add(k, string(k))
	}
	for n := range uint64(3) {
		add(keyRecord(n), "record")
		add(keyOther(n), "other")
		for _, a := range names {
			add(keyRun(a, n), "run "+a)
			add(keyAgent(a, n), "agent "+a)
		}
	}
	for _, a := range names {
		add(keyTally(a), "tally "+a)
		add(keyDoc(a, 1), "document of "+a)
		for _, b := range names {
			add(keyMeta(a, b), "meta "+a+"|"+b)
			add(keyData(a, b), "data "+a+"|"+b)
			add(keyChain(a, b), "chain "+a+"|"+b)
			for _, index := range []byte{indexMasked, indexRaw} {
				add(keyChunk(a, index, b, 0), string(index)+" chunk "+a+"|"+b)
				add(keyChunk(a, index, b, chunkDocs), string(index)+" next chunk "+a+"|"+b)
			}
		}
	}
}

// A client says of an owner of another version that it is one.
func TestOwnerOfAnotherVersion(t *testing.T) {
	o, err := Options{Home: filepath.Join(t.TempDir(), "home"), Wait: 10 * time.Second}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{opt: o, layout: o.layout()}
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	claim, err := s.own() // so that nobody else owns it
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
	for _, q := range []sent{
		&getRequest{Domain: "notes", Key: "a"},
		&changeRequest{ID: []byte("0123456789abcdef"), Domain: "notes", Key: "a", Value: []byte("v")},
		&listRequest{Domain: "notes"},
		&seekRequest{Filter: Filter{Limit: 3}},
		&pageRequest{From: 1, UpTo: 9},
		&ingestRequest{},
		&searchRequest{Domain: "notes", Text: "a text", Limit: 3},
		&putAllRequest{Domain: "notes", Items: []Item{{Key: "b", Value: []byte("text")}}},
		&whyRequest{Domain: "notes", Key: "a"},
		&verifyRequest{From: []byte("k")},
		&backupRequest{},
	} {
		p, err := e.codec.Marshal(q)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(q.Op()), p)
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
