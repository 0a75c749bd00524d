package log

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/logtest"
	"runloop.dev/rlp/kb/wire"
)

// testKey is the key of these tests, which reads notes as a Check wants them read.
type testKey struct{ logtest.Key }

func newTestKey(name string) testKey { return testKey{logtest.NewKey(name)} }

func (k testKey) open(note []byte) (o Opened, err error) {
	o.Head.Size, o.Head.Root, o.Lines, err = k.Open(note)
	return o, err
}

// A place is where a log lies, and how it is written.
type place struct {
	home string
	Options
	memTable int64 // of the database; 0: as a store has it
}

// at is the place of a log in a home, with checkpoints that are signed.
func at(home string) place {
	k := newTestKey("ours")
	return place{home: home, Options: Options{
		Tenant: "default", Now: time.Now, Seal: k.Seal, SealMark: k.Mark,
	}}
}

func newPlace(t testing.TB) place { return at(filepath.Join(t.TempDir(), "home")) }

func (p place) dir() string { return filepath.Join(p.home, "kb") }

// A testLog is a log, and who asks for what it has: as a store's is, it is opened by
// the first of them who needs it.
type testLog struct {
	Client
	place place
	*opened
}

type opened struct {
	db    *db.Database
	codec *audit.Codec
	log   *Log
}

// owners are the logs that are open, by their folders.
var owners = struct {
	sync.Mutex
	of map[string]*opened
}{of: map[string]*opened{}}

// open opens a log, unless somebody has.
func open(p place) (*testLog, error) {
	s := &testLog{place: p}
	s.Client = NewClient(s)
	return s, s.find()
}

// find takes the log that is open, or opens it.
func (s *testLog) find() (err error) {
	owners.Lock()
	defer owners.Unlock()
	if owners.of[s.place.dir()] != nil {
		return nil
	}
	o := &opened{}
	if o.codec, err = audit.NewCodec(); err != nil {
		return err
	}
	if err := db.MakeDir(s.place.dir(), false); err != nil {
		return err
	}
	if o.db, err = s.place.database(); err != nil {
		return err
	}
	s.place.Journal = logtest.Dir(s.place.home)
	o.log, err = New(o.db, o.codec, s.place.Options)
	s.opened, owners.of[s.place.dir()] = o, o
	return err
}

// database opens the database of a place.
func (p place) database() (*db.Database, error) {
	l := &db.Listener{Failed: make(chan error, 1), Free: func() error { return nil }}
	if p.memTable == 0 {
		return db.OpenDatabase(p.dir(), l)
	}
	b, err := badger.Open(db.DatabaseOptions(p.dir()).WithLogger(l).WithMemTableSize(p.memTable).
		WithValueThreshold(p.memTable / 8)) // it must fit into a transaction
	return &db.Database{DB: b, Room: func() error { return nil }}, err
}

// Close closes the log if it is this one's. Others go on with another.
func (s *testLog) Close() error {
	owners.Lock()
	defer owners.Unlock()
	if s.opened == nil {
		return nil
	}
	s.opened.log.Close()
	err := s.opened.db.Close()
	s.opened = nil
	delete(owners.of, s.place.dir())
	return err
}

func (s *testLog) Ask(ctx context.Context, q *wire.Question[*Log]) error {
	if err := s.find(); err != nil {
		return err
	}
	owners.Lock()
	l := owners.of[s.place.dir()].log
	owners.Unlock()
	return q.Local(ctx, l)
}

func (s *testLog) Hold() (*Log, bool) { return nil, false }
func (s *testLog) Release()           {}

// openLog opens a log until the test ends.
func openLog(t testing.TB, p place) *testLog {
	t.Helper()
	s, err := open(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ingestAll takes what the journals hold into a log that nobody has open.
func ingestAll(t testing.TB, p place) {
	t.Helper()
	s, err := open(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// dumpLog is everything in some spaces of a log.
func dumpLog(t testing.TB, s *testLog, spaces ...byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, space := range spaces {
		for _, p := range pairsIn(t, s.db.DB, space) {
			all[string(p.key)] = p.value
		}
	}
	return all
}

// A stored is a key of a database and what lies there.
type stored struct{ key, value []byte }

// pairsIn is everything in a space of a database.
func pairsIn(t testing.TB, in *badger.DB, space byte) (pairs []stored) {
	t.Helper()
	err := in.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{space}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			v, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			pairs = append(pairs, stored{it.Item().KeyCopy(nil), v})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pairs
}

// mustAsk has q answered by a log.
func mustAsk[A any](t testing.TB, s *testLog, q wire.Request[*Log, A]) *A {
	t.Helper()
	r, err := wire.Ask(t.Context(), s, q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return r
}
