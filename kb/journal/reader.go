package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/blake3"

	"runloop.dev/rlp/internal/record/audit"
)

// readChunk is how much a reader asks the system for at a time.
const readChunk = 64 << 10

// A State is how far a reader has come; a reader made from it goes on there.
type State struct {
	Offset int64      `cbor:"1,keyasint"`           // of the next frame, in bytes
	Frame  uint32     `cbor:"2,keyasint"`           // index of the last frame read
	RunSeq uint64     `cbor:"3,keyasint"`           // of the last kept record
	Ended  bool       `cbor:"4,keyasint,omitempty"` // the record that ends the run was read
	Head   audit.Head `cbor:"5,keyasint"`
	Names  []string   `cbor:"6,keyasint,omitempty"` // interned so far, in order
	Last   []byte     `cbor:"7,keyasint,omitempty"` // what a repeat repeats, the newest first: flags, n and body of each
}

// A Reader reads the records of one journal in order, while it is written or
// afterwards.
type Reader struct {
	file   *os.File
	run    string
	state  State
	seed   uint64
	key    *secret
	hasher *blake3.Hasher // of ten KiB: made at the first decision whose arguments are its target
	codec  *audit.Codec

	buf []byte // bytes of the file from state.Offset on
	own []byte // backing of buf
	end int64  // where what is written ends, if it is known; 0 if not
}

// OpenReader opens the journal of a run in dir, to go on from state (the zero
// State: from the beginning). The caller closes it.
func OpenReader(dir, run string, state State) (*Reader, error) {
	key, err := readSecret(filepath.Join(dir, secretName))
	if err != nil {
		return nil, err
	}
	codec, err := audit.NewCodec()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, run)
	f, err := os.OpenFile(path, os.O_RDONLY|oNoFollow|oNonBlock, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a journal: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the journal %s: %w", path, err), f.Close())
	}
	r := newReader(f, path, key, codec, key.seed(run))
	r.state = state
	return r, nil
}

// newReader reads from the beginning.
func newReader(f *os.File, path string, key *secret, codec *audit.Codec, seed uint64) *Reader {
	return &Reader{file: f, run: filepath.Base(path), seed: seed, key: key, codec: codec}
}

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }

// State returns how far the reader has come: after the record that Next returned last.
func (r *Reader) State() State {
	s := r.state
	s.Names = s.Names[:len(s.Names):len(s.Names)]
	s.Last = slices.Clone(s.Last)
	return s
}

// WriterGone reports whether nobody will write to this journal any more. Ask
// before reading to the end, or the writer may add something in between.
func (r *Reader) WriterGone() (bool, error) { return writerGone(r.file) }

// Next returns the next record, kept or not. It returns [io.EOF] when there is
// none yet, and a [DamagedError] where the file is not what was written; asked
// again it looks again.
func (r *Reader) Next() (*audit.Record, error) {
	for {
		f, length, err := r.frame()
		if err != nil {
			return nil, err
		}
		rec, err := r.apply(f)
		if err != nil {
			return nil, r.damaged(err)
		}
		r.state.Frame = f.index
		r.state.Offset += int64(length)
		r.buf = r.buf[length:]
		if rec != nil {
			return rec, nil
		}
	}
}

// frame returns the frame at the reader's place.
func (r *Reader) frame() (frame, int, error) {
	fresh, asked := false, 0
	for {
		f, length, need, err := parseFrame(r.buf, r.seed)
		if err == nil && need == 0 && f.index != r.state.Frame+1 {
			err = fmt.Errorf("frame %d is where frame %d belongs", f.index, r.state.Frame+1)
		}
		if err == nil && need == 0 {
			return f, length, nil
		}
		// What was read before the frame was committed may be old: look at the file itself.
		if fresh && (err != nil || need <= asked) {
			switch {
			case errors.Is(err, errNoFrame), err == nil && need <= 8:
				return f, 0, io.EOF
			case err == nil:
				err = errors.New("the file ends within it")
			}
			return f, 0, r.damaged(err)
		}
		if err := r.fill(need); err != nil {
			return f, 0, err
		}
		fresh, asked = true, max(need, readChunk)
	}
}

// fill reads the file from the reader's place on, at least need bytes if they are there.
func (r *Reader) fill(need int) error {
	want := max(need, readChunk)
	if r.end > 0 { // what lies behind are zeros that the system would make to be read
		want = min(want, int(r.end-r.state.Offset))
	}
	if len(r.own) < want {
		r.own = make([]byte, want)
	}
	n, err := r.file.ReadAt(r.own[:want], r.state.Offset)
	r.buf = r.own[:n]
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the journal of run %s: %w", r.run, err)
	}
	return nil
}

func (r *Reader) damaged(err error) error {
	return &DamagedError{Run: r.run, Frame: r.state.Frame + 1, Offset: r.state.Offset, Why: err.Error()}
}

// apply takes in one frame and returns its record, if it is one.
func (r *Reader) apply(f frame) (*audit.Record, error) {
	if (f.index == 1) != (f.kind == kindHead) {
		return nil, errors.New("the head is not the first frame")
	}
	if r.state.Ended {
		return nil, errors.New("it comes after the end of the run")
	}
	switch f.kind {
	case kindHead:
		return nil, r.applyHead(f)
	case kindName:
		if pad8(f.n) != len(f.body) || f.n == 0 {
			return nil, errors.New("a name of the wrong length")
		}
		r.state.Names = append(r.state.Names, string(f.body[:f.n]))
		return nil, nil
	case kindDecision:
		rec, err := r.decision(f)
		if err == nil {
			r.state.Last = withDecision(f, r.state.Last)
		}
		return rec, err
	case kindRepeat:
		return r.repeat(f)
	case kindEvent:
		return r.event(f)
	}
	return nil, fmt.Errorf("unknown kind %d", f.kind)
}

func (r *Reader) applyHead(f frame) error {
	if f.n > 7 || f.n >= len(f.body) {
		return errors.New("a head of the wrong length")
	}
	var h fileHead
	if err := r.codec.Unmarshal(f.body[:len(f.body)-f.n], &h); err != nil {
		return err
	}
	if h.Version != formatVersion {
		return fmt.Errorf("format %d is not known", h.Version)
	}
	if h.Head.RunID != r.run {
		return fmt.Errorf("it is the journal of run %q", h.Head.RunID)
	}
	r.state.Head = h.Head
	return nil
}

// count checks the number of a kept record.
func (r *Reader) count(runSeq uint64) error {
	if runSeq != r.state.RunSeq+1 {
		return fmt.Errorf("record %d is where record %d belongs", runSeq, r.state.RunSeq+1)
	}
	r.state.RunSeq = runSeq
	return nil
}

func (r *Reader) decision(f frame) (*audit.Record, error) {
	b, err := parseDecision(f)
	if err != nil {
		return nil, err
	}
	rec := &audit.Record{Time: time.UnixMilli(b.ms).UTC(), Head: r.state.Head, Kept: f.flags&flagKeep != 0}
	d := &audit.DecisionRecord{
		Deny: f.flags&flagDeny != 0, Severity: audit.Severity(f.flags >> flagSevShift & 3),
		Target: strings.ToValidUTF8(string(b.target), "\uFFFD"),
	}
	rec.Decision = d
	for _, w := range []struct {
		to *string
		n  audit.Name
	}{
		{&d.Cap, b.cap},
		{&d.Op, b.op},
		{&d.Reason, b.reason},
		{&d.Layer, b.layer},
		{&d.Tool, b.tool},
		{&d.Label, b.label_},
	} {
		if int(w.n) > len(r.state.Names) {
			return nil, fmt.Errorf("name %d was never given", w.n)
		}
		if w.n > 0 {
			*w.to = r.state.Names[w.n-1]
		}
	}
	if b.args != nil {
		copy(d.ArgsHash[:], b.args)
	} else {
		if r.hasher == nil {
			r.hasher = r.key.hasher()
		}
		d.ArgsHash = hashArgs(r.hasher, d.Op, b.target)
	}
	if rec.Kept {
		rec.RunSeq = uint64(b.runSeq)
		return rec, r.count(rec.RunSeq)
	}
	return rec, nil
}

// withDecision is what a repeat repeats once the decision f was read.
func withDecision(f frame, last []byte) []byte {
	kept := 0
	for range repeatable - 1 {
		kept += writtenLen(last[kept:])
	}
	last = append(append(last[:kept], 0, 0, 0), f.body...)
	copy(last[3+len(f.body):], last[:kept])
	last[0] = f.flags
	binary.LittleEndian.PutUint16(last[1:], uint16(f.n))
	copy(last[3:], f.body)
	return last
}

// writtenLen is how much of p, part of a [State]'s Last, is the first decision; 0
// when that is none.
func writtenLen(p []byte) int {
	if len(p) < 3 {
		return 0
	}
	n := 3 + decisionLen - headerLen + pad8(int(binary.LittleEndian.Uint16(p[1:])))
	if p[0]&flagArgs != 0 {
		n += 32
	}
	if n > len(p) {
		return 0
	}
	return n
}

// repeat reads a decision once more.
func (r *Reader) repeat(f frame) (*audit.Record, error) {
	l := r.state.Last
	for range f.flags - 1 {
		l = l[writtenLen(l):]
	}
	if l = l[:writtenLen(l)]; len(l) == 0 {
		return nil, errors.New("a repetition of nothing")
	}
	again := frame{flags: l[0], n: int(binary.LittleEndian.Uint16(l[1:])), body: slices.Clone(l[3:])}
	ms := binary.LittleEndian.Uint64(again.body) + uint64(f.n)
	binary.LittleEndian.PutUint64(again.body, ms)
	if again.flags&flagKeep != 0 {
		binary.LittleEndian.PutUint32(again.body[8:], uint32(r.state.RunSeq)+1)
	}
	return r.decision(again)
}

func (r *Reader) event(f frame) (*audit.Record, error) {
	if f.n > 7 || 16+f.n > len(f.body) {
		return nil, errors.New("an event of the wrong length")
	}
	e := new(audit.Event)
	if err := r.codec.Unmarshal(f.body[16:len(f.body)-f.n], e); err != nil {
		return nil, err
	}
	if !audit.Known(e.Kind) {
		return nil, fmt.Errorf("an event of unknown kind %q", e.Kind)
	}
	rec := &audit.Record{
		Time: time.UnixMilli(int64(binary.LittleEndian.Uint64(f.body))).UTC(), Head: r.state.Head, Kept: true,
		RunSeq: binary.LittleEndian.Uint64(f.body[8:]), Event: e,
	}
	r.state.Ended = audit.Ends(e.Kind)
	return rec, r.count(rec.RunSeq)
}

// Tail judges what follows the last frame of a journal whose writer is gone:
// nothing but zeros, or a frame that its writer died in (torn), or, as an
// error, frames that can no longer be reached.
func (r *Reader) Tail() (torn bool, err error) {
	info, err := r.file.Stat()
	if err != nil {
		return false, fmt.Errorf("reading the journal of run %s: %w", r.run, err)
	}
	if info.Size() < r.state.Offset {
		return false, r.damaged(fmt.Errorf("the file is cut to %d bytes", info.Size()))
	}
	// The next frames, should there be any, are at most this far on.
	buf := make([]byte, min(info.Size()-r.state.Offset, maxFrame+maxChunk+windowBytes))
	n, err := r.file.ReadAt(buf, r.state.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("reading the journal of run %s: %w", r.run, err)
	}
	buf = buf[:n]
	for at := 0; at+headerLen <= len(buf); at += 8 {
		if binary.LittleEndian.Uint64(buf[at:]) == 0 {
			continue
		}
		torn = true
		f, _, need, err := parseFrame(buf[at:], r.seed)
		if err == nil && need == 0 && r.follows(f, at) {
			return true, r.damaged(fmt.Errorf("frame %d follows at byte %d, and what lies before it is not readable", f.index,
				r.state.Offset+int64(at)))
		}
	}
	return torn, nil
}

// follows reports whether f, found at bytes after the reader's place, is a
// frame of the writer's. A frame of one word has a short sum, which something
// else can have by chance, so that its index must be near as well.
func (r *Reader) follows(f frame, at int) bool {
	return f.index > r.state.Frame && (f.kind != kindRepeat || int(f.index-r.state.Frame) <= at/8+4096)
}
