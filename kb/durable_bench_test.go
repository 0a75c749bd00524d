package kb_test

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

// BenchmarkDurable is records a second, each on disk before the next of its
// writer: runs that sync before every call, and badger with every commit synced,
// which takes together what is waiting. Both take turns.
//
//	go test -c -o /tmp/kb.test ./kb && /tmp/kb.test -test.run '^$' -test.bench Durable -test.benchtime 20000x
//
// -test.count 5
func BenchmarkDurable(b *testing.B) {
	for _, writers := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprintf("journals/%d", writers), func(b *testing.B) { benchJournals(b, writers, new(journal.Group)) })
		b.Run(fmt.Sprintf("badger/%d", writers), func(b *testing.B) { benchBadger(b, writers) })
	}
	b.Run("journals_ungrouped/64", func(b *testing.B) { benchJournals(b, 64, nil) })
}

// each has writers do b.N things together.
func each(b *testing.B, writers int, do func(writer, n int) error) {
	b.ResetTimer()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := w; n < b.N; n += writers {
				if err := do(w, n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func benchJournals(b *testing.B, writers int, group *journal.Group) {
	dir := filepath.Join(b.TempDir(), "journal")
	runs := make([]*journal.Journal, writers)
	made := make([]audit.Decision, writers)
	for i := range runs {
		j, err := journal.Create(journal.Options{
			Dir: dir, Group: group, Synced: true,
			Head: audit.Head{RunID: fmt.Sprintf("run%d", i), TraceID: "t", Tenant: "default", Agent: "writer"},
		})
		if err != nil {
			b.Fatal(err)
		}
		defer j.Close()
		runs[i], made[i] = j, decision(b, j)
	}
	args := [32]byte{1}
	each(b, writers, func(w, n int) error {
		d := &made[w]
		d.Target, d.Args = "/srv/agent/docs/notes/2026-01.md", &args // so that it is written whole
		if _, err := runs[w].Decide(d); err != nil {
			return err
		}
		return runs[w].Sync()
	})
	if group != nil {
		if err := group.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchBadger(b *testing.B, writers int) {
	opt := badger.DefaultOptions(b.TempDir()).WithLogger(nil).WithMetricsEnabled(false).WithSyncWrites(true).
		WithMemTableSize(32 << 20).WithNumMemtables(2).WithDetectConflicts(false)
	db, err := badger.Open(opt)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	type put struct {
		seq  uint64
		done chan error
	}
	queue := make(chan put, writers)
	value := make([]byte, 130) // as much as the frame of the other
	go func() {
		for first := range queue {
			batch := []put{first}
			for more := true; more; {
				select {
				case p := <-queue:
					batch = append(batch, p)
				default:
					more = false
				}
			}
			txn := db.NewTransaction(true)
			var err error
			for _, p := range batch {
				if err == nil {
					err = txn.Set(binary.BigEndian.AppendUint64([]byte("r"), p.seq), value)
				}
			}
			if err == nil {
				err = txn.Commit()
			}
			for _, p := range batch {
				p.done <- err
			}
		}
	}()
	done := make([]chan error, writers)
	for i := range done {
		done[i] = make(chan error, 1)
	}
	each(b, writers, func(w, n int) error {
		queue <- put{uint64(n), done[w]}
		return <-done[w]
	})
	close(queue)
}
