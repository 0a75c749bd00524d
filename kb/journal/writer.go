package journal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"os"
	"sync/atomic"

	"github.com/zeebo/blake3"

	"runloop.dev/rlp/internal/record/audit"
)

// Errors of a writer. After one of them from Decide nothing was recorded.
var (
	// ErrFull says that a run has reached what one run may record.
	ErrFull = errors.New("the run has recorded as much as one run may")
	// ErrEnded says that the run's last record is written, or the journal closed.
	ErrEnded = errors.New("the journal has ended")
	// ErrBroken says that the file is no longer what the writer left: it was
	// cut, or its device failed. It stays.
	ErrBroken = errors.New("the journal file is broken")
	// ErrTooLarge says that one event or name is larger than a record may be.
	ErrTooLarge = errors.New("the record is too large")
)

const (
	// MaxBytes is how large a journal may become when Options says nothing.
	MaxBytes = 1 << 30
	// MaxDecisions is how many decisions one run may record when Options says
	// nothing: what a store takes in within some 20 seconds.
	MaxDecisions = 1_000_000
	// maxTarget is how much of a target is kept; the digest covers all of it.
	maxTarget = 8 << 10
	// maxName is the longest word that can be interned.
	maxName = 4 << 10
	// reserve is room that only the record that ends the run may take, so that a
	// full disk cannot keep the end from being recorded.
	reserve = 8 << 10
)

// Options says what [Create] makes.
type Options struct {
	Dir   string     // the journal directory, made if it is not there
	Head  audit.Head // RunID names the file
	Clock *Clock     // nil: a clock of its own

	// Observe is called with every decision, kept or not, in order, by one
	// goroutine, some milliseconds after the record was made, until it returns
	// false. Nil: nobody is told.
	Observe func(*audit.Record) (more bool)
	// Events has Observe called with events as well, each record within some
	// milliseconds: for who shows a run while it goes on.
	Events bool
	// Synced says that Sync will be called while the run goes on.
	Synced bool
	// Group syncs this journal together with others; nil: it syncs by itself.
	Group *Group
	// Disk is where syncing leads; nil: the system's.
	Disk Disk
	// MaxBytes bounds the file; 0 means [MaxBytes].
	MaxBytes int64
	// MaxDecisions bounds the decisions; 0 means [MaxDecisions].
	MaxDecisions uint32
}

// A Journal is the [audit.Sink] of one run. Its methods are called by one
// goroutine at a time.
type Journal struct {
	// What Decide touches comes first.
	win    []byte // mapping of the file from base on; it may reach beyond the file's end
	base   int64
	off    int64 // where the next frame goes, in the file
	soft   int64 // up to where Decide may write without asking more()
	index  uint32
	most   uint32 // frames after which Decide refuses
	runSeq uint32
	seed   uint64
	whole  audit.Mark          // of the decision that was last written whole
	recent [repeatable]written // by their marks
	clock  *Clock
	obs    *observer
	broken atomic.Pointer[error] // set once
	state  writerState

	disk    Disk
	synced  int64 // up to where the file is on disk
	named   bool  // and so is its name
	group   *Group
	seat    seat
	grow    grower
	file    *os.File
	path    string
	max     int64
	names   map[string]audit.Name
	codec   *audit.Codec
	secret  *secret
	hasher  *blake3.Hasher // of ten KiB: made at the first arguments
	results hash.Hash      // made at the first result
	own     *Clock         // the clock, if it is this journal's to stop
}

// A writerState says what may still be written.
type writerState uint8

const (
	writing writerState = iota
	ended               // the end record is there
	closed
)

var _ audit.Sink = (*Journal)(nil)

// Path returns the journal's file.
func (j *Journal) Path() string { return j.path }

// RunSeq returns how many records were kept so far.
func (j *Journal) RunSeq() uint64 { return uint64(j.runSeq) }

// Intern gives s a Name that is valid for this run; "" is the zero Name.
func (j *Journal) Intern(s string) (audit.Name, error) {
	if s == "" {
		return 0, nil
	}
	if n, ok := j.names[s]; ok {
		return n, nil
	}
	if len(s) > maxName || len(j.names) >= 1<<16-1 {
		return 0, fmt.Errorf("recording a name of %d bytes as number %d: %w", len(s), len(j.names)+1, ErrTooLarge)
	}
	if err := j.slow(kindName, len(s), []byte(s), reserve); err != nil {
		return 0, fmt.Errorf("recording a name: %w", err)
	}
	n := audit.Name(len(j.names) + 1)
	j.names[s] = n
	return n, nil
}

// Event appends e as a kept record. One that ends the run is the last.
func (j *Journal) Event(e *audit.Event) error {
	if !audit.Known(e.Kind) {
		return fmt.Errorf("recording an event: unknown kind %q", e.Kind)
	}
	body, err := j.codec.Marshal(e)
	if err != nil {
		return fmt.Errorf("recording %s: %w", e.Kind, err)
	}
	keepFree := int64(reserve)
	if audit.Ends(e.Kind) {
		keepFree = 0
	}
	buf := make([]byte, 16, 16+len(body))
	binary.LittleEndian.PutUint64(buf, uint64(j.clock.UnixMilli()))
	binary.LittleEndian.PutUint64(buf[8:], uint64(j.runSeq)+1)
	buf = append(buf, body...)
	if err := j.slow(kindEvent, pad8(len(buf))-len(buf), buf, keepFree); err != nil {
		return fmt.Errorf("recording %s: %w", e.Kind, err)
	}
	j.runSeq++
	if audit.Ends(e.Kind) {
		j.state = ended
		j.soft = 0 // so that Decide asks, and is told
	}
	if j.obs != nil && j.obs.events {
		j.obs.nudge()
	}
	return nil
}

// ArgsHash returns the keyed BLAKE3 digest of op and args, each length-prefixed.
func (j *Journal) ArgsHash(op string, args ...[]byte) [32]byte {
	if j.hasher == nil {
		j.hasher = j.secret.hasher()
	}
	return hashArgs(j.hasher, op, args...)
}

// ResultHash returns the HMAC-SHA256 of what a call gave back, under a key of
// its own: twice as fast as BLAKE3 on results of usual length.
func (j *Journal) ResultHash(result []byte) (out [32]byte) {
	if j.results == nil {
		j.results = hmac.New(sha256.New, j.secret.resultKey())
	}
	j.results.Reset()
	j.results.Write(result)
	j.results.Sum(out[:0])
	return out
}

// usable says why nothing can be written any more, or nil.
func (j *Journal) usable() error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	if j.state != writing {
		return ErrEnded
	}
	return nil
}

// fail makes err the answer to everything that follows.
func (j *Journal) fail(err error) error {
	err = fmt.Errorf("%w: %w", ErrBroken, err)
	if !j.broken.CompareAndSwap(nil, &err) {
		err = *j.broken.Load()
	}
	return err
}

// Close lets the observer see everything, gives back what was allocated in vain
// if that is much, and releases the file. A journal closed without a record that ends the
// run reads as that of a run that was killed.
func (j *Journal) Close() error {
	if j.state == closed {
		return nil
	}
	j.state = closed
	j.soft = 0
	var errs []error
	if j.obs != nil {
		errs = append(errs, j.obs.drain())
	}
	j.grow.wg.Wait()
	errs = append(errs, unmap(j.win))
	j.win = nil
	if err := j.broken.Load(); err != nil {
		errs = append(errs, *err)
	} else {
		errs = append(errs, j.giveBack(), stillThere(j.file, j.path))
	}
	errs = append(errs, j.file.Close())
	if j.own != nil {
		j.own.Stop()
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing the journal: %w", err)
	}
	return nil
}

// giveBack frees what was allocated and not used, unless it is so little that
// the journal is sooner taken in than it is worth the time.
func (j *Journal) giveBack() error {
	if j.grow.alloc <= firstChunk {
		return nil
	}
	return j.file.Truncate(j.off)
}

// stillThere reports an error when path is no longer the file f: what was
// written into a file that was removed is recorded nowhere.
func stillThere(f *os.File, path string) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(path)
	if err != nil || !os.SameFile(mine, there) {
		return fmt.Errorf("%w: it was removed under its writer", ErrBroken)
	}
	return nil
}
