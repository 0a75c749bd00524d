package journal

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"runtime/debug"
	"unsafe"

	"runloop.dev/rlp/internal/record/audit"
)

// Decide appends d. It allocates nothing and makes no system call but when the
// file must grow.
func (j *Journal) Decide(d *audit.Decision) (audit.Mark, error) {
	n := len(d.Target)
	size := decisionLen + pad8(n)
	if d.Args != nil {
		size += 32
	}
	if n > maxTarget {
		return j.decideLong(d)
	}
	if j.index >= j.most {
		return 0, fmt.Errorf("recording a decision: %w", ErrFull)
	}
	if j.off+int64(size) > j.soft || j.broken.Load() != nil {
		if err := j.more(int64(size), reserve); err != nil {
			return 0, fmt.Errorf("recording a decision: %w", err)
		}
	}
	if err := j.put(d, size); err != nil {
		return 0, fmt.Errorf("recording a decision: %w", err)
	}
	if j.obs != nil {
		j.obs.nudge()
	}
	if d.Args != nil {
		return 0, nil
	}
	return j.whole, nil
}

// put writes the frame of d at j.off, where there is room for size bytes. A
// fault in the mapping (the file was cut, the device failed) is its error.
func (j *Journal) put(d *audit.Decision, size int) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			err = j.fault(r)
		}
	}()
	head := uint64(kindDecision)<<32 | uint64(d.Severity&3)<<(40+flagSevShift) | uint64(len(d.Target))<<48
	if d.Deny {
		head |= flagDeny << 40
	}
	if d.Keep {
		head |= flagKeep << 40
		j.runSeq++ // taken back if it comes to nothing: a fault ends the journal
	}
	if d.Args != nil {
		head |= flagArgs << 40
	}
	capOp := uint64(d.Cap)<<32 | uint64(d.Op)<<48
	rest := uint64(d.Reason) | uint64(d.Layer)<<16 | uint64(d.Tool)<<32 | uint64(d.Label)<<48
	now := j.clock.UnixMilli()
	at := j.off - j.base
	l := &j.recent[j.whole%repeatable]
	if since := uint64(now - l.ms); since < repeatMax && l.head == head && l.capOp == capOp && l.rest == rest &&
		d.Args == nil && string(l.target) == d.Target {
		j.put1(repeatWord(j.seed, j.index+1, 1, since))
		return nil
	}
	p := j.win[at : at+int64(size)]
	tail := p[decisionLen:]
	runSeq := uint64(0)
	if d.Keep {
		runSeq = uint64(j.runSeq)
	}
	binary.LittleEndian.PutUint64(p[16:], uint64(now))
	binary.LittleEndian.PutUint64(p[24:], runSeq|capOp)
	binary.LittleEndian.PutUint64(p[32:], rest)
	copy(tail, d.Target)
	if d.Args != nil {
		copy(tail[len(tail)-32:], d.Args[:])
	}
	j.commit(p, head)
	j.whole++
	j.recent[j.whole%repeatable] = written{head, capOp, rest, now, tail[:len(d.Target)]}
	return nil
}

// Again appends a decision once more. It is false, and nothing is appended, when
// that takes more than one word. Unlike Decide it does not look out for a fault
// in the mapping: the goroutine that calls it must panic on one
// (debug.SetPanicOnFault), which ends what it was about to allow.
func (j *Journal) Again(m audit.Mark) bool {
	back, l := uint64(j.whole-m), &j.recent[m%repeatable]
	since := uint64(j.clock.UnixMilli() - l.ms)
	if back >= repeatable || l.head == 0 || since >= repeatMax ||
		j.index >= j.most || j.off+repeatLen > j.soft || j.broken.Load() != nil {
		return false
	}
	j.put1(repeatWord(j.seed, j.index+1, back+1, since))
	if l.head&(flagKeep<<40) != 0 {
		j.runSeq++
	}
	if j.obs != nil {
		j.obs.nudge()
	}
	return true
}

// put1 writes a frame of one word, for which there is room.
func (j *Journal) put1(word uint64) {
	storeWord(&j.win[j.off-j.base], word)
	j.index++
	j.off += repeatLen
}

// written is a decision that a repeat frame may repeat; with a head of 0 none.
// Its target is a view of the mapping.
type written struct {
	head, capOp, rest uint64
	ms                int64
	target            []byte
}

// commit makes the frame p be there: its body is in place, and head is its
// second word but for the sum.
func (j *Journal) commit(p []byte, head uint64) {
	word := uint64(len(p)) | uint64(j.index+1)<<32
	binary.LittleEndian.PutUint64(p[8:], head|uint64(sum(j.seed, word, head, p[headerLen:])))
	storeWord(&p[0], word)
	j.index++
	j.off += int64(len(p))
}

// decideLong records a target that is too long to be kept whole: its
// beginning, and the digest of all of it.
func (j *Journal) decideLong(d *audit.Decision) (audit.Mark, error) {
	short := *d
	if d.Args == nil {
		op := j.nameOf(d.Op)
		args := j.ArgsHash(op, []byte(d.Target))
		short.Args = &args
	}
	const mark = "…"
	short.Target = d.Target[:maxTarget-len(mark)] + mark
	return j.Decide(&short)
}

// nameOf finds the word of a Name; it is slow.
func (j *Journal) nameOf(n audit.Name) string {
	for s, m := range j.names {
		if m == n {
			return s
		}
	}
	return ""
}

// slow appends a frame that is not a decision, leaving keepFree bytes free.
func (j *Journal) slow(kind uint8, n int, body []byte, keepFree int64) (err error) {
	size := headerLen + pad8(len(body))
	if size > maxFrame {
		return ErrTooLarge
	}
	if err := j.more(int64(size), keepFree); err != nil {
		return err
	}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			err = j.fault(r)
		}
	}()
	at := j.off - j.base
	p := j.win[at : at+int64(size)]
	copy(p[headerLen:], body)
	j.commit(p, uint64(kind)<<32|uint64(n)<<48)
	return nil
}

// fault turns the panic of a failed access to the mapping into an error and
// lets every other panic go on.
func (j *Journal) fault(r any) error {
	if f, ok := r.(interface {
		runtime.Error
		Addr() uintptr
	}); ok {
		lo := uintptr(unsafe.Pointer(unsafe.SliceData(j.win)))
		if a := f.Addr(); a >= lo && a < lo+uintptr(len(j.win)) {
			return j.fail(fmt.Errorf("byte %d cannot be written", j.base+int64(a-lo)))
		}
	}
	panic(r)
}
