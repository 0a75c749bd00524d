package log

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/wire"
)

// logSize is how many records the benchmarks' log has: RLP_SOAK=1 makes it the
// million that the target is about.
func logSize() int {
	if os.Getenv("RLP_SOAK") != "" {
		return 1_000_000
	}
	if testing.Short() {
		return 2000
	}
	return 20_000
}

// largeLog is a log of that many records of runs of 1,000, with a checkpoint
// behind each, as they would lie there had they been recorded.
var largeLog = sync.OnceValues(func() (string, error) {
	home, err := os.MkdirTemp("", "rlp-log")
	if err != nil {
		return "", err
	}
	e, err := open(at(filepath.Join(home, "home")))
	if err != nil {
		return "", err
	}
	for run := range logSize() / 1000 {
		if err := e.log.madeUp(fmt.Sprintf("0197b3e2-7c1d-7e4a-9d00-%012d", run), 1000, true); err != nil {
			return "", err
		}
	}
	if err := e.db.Flatten(2); err != nil { // a store at rest: nothing is moved while it is read
		return "", err
	}
	return e.place.home, e.Close()
})

// madeUp puts a run of n records into the log.
func (l *Log) madeUp(run string, n int, ends bool) error {
	digest := "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	head := audit.Head{
		RunID: run, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Tenant: "default", Agent: "writer",
		BundleDigest: digest, EffectiveDigest: digest,
	}
	b := &intake{Log: l, run: run}
	for i := range n {
		rec := &audit.Record{
			Time: time.UnixMilli(1_767_225_600_000 + int64(i)), Head: head, Kept: true,
			RunSeq: uint64(i + 1),
		}
		if ends && i == n-1 {
			rec.Event = &audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}
		} else {
			rec.Decision = &audit.DecisionRecord{
				Cap: "fs.read", Op: "fs_read", Target: fmt.Sprintf("/home/user/notes/%d.md", i), Severity: audit.Info,
				Deny: i%4 == 0, Reason: "granted", Layer: "manifest", ArgsHash: [32]byte{byte(i)},
			}
		}
		b.batch = append(b.batch, rec)
	}
	return b.flush(journalState{State: journal.State{RunSeq: uint64(n), Ended: ends}, Done: ends})
}

func openLarge(b *testing.B) *testLog {
	b.Helper()
	home, err := largeLog()
	if err != nil {
		b.Fatal(err)
	}
	return openLog(b, at(home))
}

// BenchmarkVerifyLog is the whole log: records, tree, checkpoints with their
// signatures, runs and indexes. -cpu 1 makes it one core.
func BenchmarkVerifyLog(b *testing.B) {
	e := openLarge(b)
	check := Check{Open: newTestKey("ours").open}
	for b.Loop() {
		r, err := walkAll(b, e, check)
		if err != nil || r.Records != logSize() || r.Checkpoints < logSize()/1000 {
			b.Fatal(r, err)
		}
	}
	b.ReportMetric(float64(logSize())*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkVerifyRun is one run of 1,000 records.
func BenchmarkVerifyRun(b *testing.B) {
	e := openLarge(b)
	check := Check{Open: newTestKey("ours").open, Run: fmt.Sprintf("0197b3e2-7c1d-7e4a-9d00-%012d", logSize()/2000)}
	for b.Loop() {
		if r, err := walkAll(b, e, check); err != nil || r.Records != 1000 {
			b.Fatal(r, err)
		}
	}
}

// BenchmarkScanRun reads the records of one run, each decoded.
func BenchmarkScanRun(b *testing.B) {
	e := openLarge(b)
	f := Filter{Run: fmt.Sprintf("0197b3e2-7c1d-7e4a-9d00-%012d", logSize()/2000)}
	for b.Loop() {
		at, err := wire.Ask(b.Context(), e, &seekRequest{Filter: f})
		n := 0
		for more := true; more && err == nil; {
			var r *pageAnswer
			if r, err = wire.Ask(b.Context(), e, &pageRequest{Filter: f, From: at.From, UpTo: at.UpTo}); err == nil {
				n += len(r.Records)
				at.From, more = r.Next, r.More
			}
		}
		if err != nil || n != 1000 {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkInclusion proves one record after another.
func BenchmarkInclusion(b *testing.B) {
	e := openLarge(b)
	at := uint64(1)
	for b.Loop() {
		at = at*48271%uint64(logSize()) + 1
		if _, err := wire.Ask(b.Context(), e, &inclusionRequest{Seq: at}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDurableIngest is records into the log, in batches as journals give
// them: with the tree and checkpoints, and badger alone with the same records and
// the same keys, batch by batch in turns. The ratio is what the tree leaves of
// badger's own throughput.
func BenchmarkDurableIngest(b *testing.B) {
	for _, c := range []struct {
		size int
		ends bool // a run ends with each batch, and there is a checkpoint
	}{{1, false}, {64, false}, {64, true}, {1000, true}} {
		size, ends := c.size, c.ends
		b.Run(fmt.Sprintf("batch=%d,ends=%v", size, ends), func(b *testing.B) {
			e := openLog(b, newPlace(b))
			db, err := db.OpenDatabase(b.TempDir(), &db.Listener{})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			var with, alone time.Duration
			i, seq := 0, uint64(0)
			for b.Loop() {
				i++
				run := fmt.Sprintf("0197b3e2-7c1d-7e4a-9d00-%012d", i)
				begin := time.Now()
				if err := e.log.madeUp(run, size, ends); err != nil {
					b.Fatal(err)
				}
				with += time.Since(begin)
				begin = time.Now()
				if err := bare(e, db.DB, run, size, &seq); err != nil {
					b.Fatal(err)
				}
				alone += time.Since(begin)
			}
			b.ReportMetric(float64(size)*float64(b.N)/with.Seconds(), "records/s")
			b.ReportMetric(alone.Seconds()/with.Seconds(), "of-badger")
		})
	}
}

// bare is what the log was before it was a tree: records, what leads to them, and
// how far their journal was read.
func bare(e *testLog, to *badger.DB, run string, n int, seq *uint64) error {
	digest := "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	head := audit.Head{
		RunID: run, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Tenant: "default", Agent: "writer",
		BundleDigest: digest, EffectiveDigest: digest,
	}
	return to.Update(func(txn *badger.Txn) error {
		for i := range n {
			*seq++
			rec := &audit.Record{
				Seq: *seq, Time: time.UnixMilli(1_767_225_600_000 + int64(i)), Head: head, Kept: true,
				RunSeq: uint64(i + 1),
			}
			rec.Decision = &audit.DecisionRecord{
				Cap: "fs.read", Op: "fs_read", Target: fmt.Sprintf("/home/user/notes/%d.md", i), Severity: audit.Info,
				Deny: i%4 == 0, Reason: "granted", Layer: "manifest", ArgsHash: [32]byte{byte(i)},
			}
			p, err := e.codec.Encode(rec)
			if err != nil {
				return err
			}
			if err := setRecord(txn, rec, p); err != nil {
				return err
			}
		}
		p, err := e.codec.Marshal(journalState{State: journal.State{RunSeq: uint64(n)}})
		return errors.Join(err, txn.Set(keySeq(), db.Number(nil, *seq)), txn.Set(keyState(run), p))
	})
}
