package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// ErrFull is what a [Memory] with no room left answers.
var ErrFull = errors.New("the log takes no more")

// A Memory is a [Sink] that keeps records in memory, for tests and for runs
// that nobody records.
type Memory struct {
	Decisions []Kept
	Events    []Event
	// Room is how many more records it takes; negative: any number.
	Room  int
	words []string
}

// Kept is a decision with its words spelled out.
type Kept struct {
	Cap, Op, Reason, Layer, Target, Tool, Label string

	Deny, Keep bool
	Severity   Severity
	Args       *[32]byte
}

// NewMemory returns a log that takes any number of records.
func NewMemory() *Memory { return &Memory{Room: -1, words: []string{""}} }

// Sync has nothing to do: what is in memory survives nothing.
func (m *Memory) Sync() error { return nil }

// Intern gives s a Name.
func (m *Memory) Intern(s string) (Name, error) {
	for i, w := range m.words {
		if w == s {
			return Name(i), nil
		}
	}
	m.words = append(m.words, s)
	return Name(len(m.words) - 1), nil
}

func (m *Memory) take() error {
	if m.Room == 0 {
		return ErrFull
	}
	if m.Room > 0 {
		m.Room--
	}
	return nil
}

// Decide keeps d.
func (m *Memory) Decide(d *Decision) (Mark, error) {
	if err := m.take(); err != nil {
		return 0, err
	}
	k := Kept{
		Cap: m.words[d.Cap], Op: m.words[d.Op], Reason: m.words[d.Reason], Layer: m.words[d.Layer],
		Tool: m.words[d.Tool], Label: m.words[d.Label], Target: string([]byte(d.Target)), Deny: d.Deny, Keep: d.Keep,
		Severity: d.Severity,
	}
	if d.Args != nil {
		sum := *d.Args
		k.Args = &sum
	}
	m.Decisions = append(m.Decisions, k)
	return Mark(len(m.Decisions)), nil
}

// Again keeps a decision once more.
func (m *Memory) Again(of Mark) bool {
	if of == 0 || of > Mark(len(m.Decisions)) || m.take() != nil {
		return false
	}
	m.Decisions = append(m.Decisions, m.Decisions[of-1])
	return true
}

// Event keeps e.
func (m *Memory) Event(e *Event) error {
	if err := m.take(); err != nil {
		return err
	}
	m.Events = append(m.Events, *e)
	return nil
}

// ArgsHash is a digest without a key: it protects nothing.
func (m *Memory) ArgsHash(op string, args ...[]byte) [32]byte {
	h := sha256.New()
	h.Write([]byte(op))
	for _, a := range args {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(a)))
		h.Write(n[:])
		h.Write(a)
	}
	return [32]byte(h.Sum(nil))
}

// ResultHash is a digest without a key as well.
func (m *Memory) ResultHash(result []byte) [32]byte { return sha256.Sum256(result) }

// Close does nothing.
func (m *Memory) Close() error { return nil }
